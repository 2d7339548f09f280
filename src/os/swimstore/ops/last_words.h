// SPDX-License-Identifier: LGPL-2.1-or-later
// How an OSD ends that cannot go on: with a message in its log, and a signal, of which Ceph makes a crash report.
#pragma once

#include "vtkv/util/mutex.h"

namespace swimstore {

// Taken before the message, and never given back: where one thread has to end the process, others soon have to, too.
// The first one speaks, the others wait for the end; one that aborted meanwhile would end it before the report is
// written.
vtkv::Mutex& last_words();

}  // namespace swimstore
