// SPDX-License-Identifier: LGPL-2.1-or-later
// Nothing of its own: what is compiled with it is the precompiled header (slim.cmake).
