// SPDX-License-Identifier: LGPL-2.1-or-later
// What ceph-swimstore-tool's looking commands print.
#pragma once

#include <string>

#include "swimstore/fsck/repair.h"
#include "swimstore/tool/store_files.h"
#include "vtkv/tool/report.h"

namespace swimstore {

// `options`: those that an upgrade would have, or had.
vtkv::Status report_info(StoreFiles& files, const vtkv::Options& options, vtkv::Report& report);
// Those of the databases: of the first one, and whether an upgrade would change any; where they can be read.
void report_database_formats(StoreFiles& files, const vtkv::Options& options, vtkv::Report& report);
// Where log and tree lie, if that is another file system.
vtkv::Status report_metadata_place(StoreFiles& files, vtkv::Report& report);
vtkv::Status list_collections(StoreFiles& files, vtkv::Report& report);
// Of one collection, when it is named.
vtkv::Status list_objects(StoreFiles& files, const std::string& collection, vtkv::Report& report);
// The entries of the tree that repair quarantined.
vtkv::Status list_quarantined_entries(StoreFiles& files, vtkv::Report& report);

// Format version and features, and whether an upgrade would change them.
void dump_features(const Superblock& superblock, vtkv::Report& report);
void dump_superblock(const StoreFiles& files, vtkv::Report& report);
vtkv::Status dump_containers(StoreFiles& files, vtkv::Report& report);
// `slot` is "64K/17". Who refers to it, and whether its bytes match their checksums; `out` names a file for the
// bytes themselves. Code::invalid_argument when it is no slot's name.
vtkv::Status dump_slot(StoreFiles& files, const std::string& slot, const std::string& out, vtkv::Report& report);
vtkv::Status dump_onode(StoreFiles& files, const std::string& object, vtkv::Report& report);

void report_repairs(const std::vector<Repaired>& changes, vtkv::Report& report);
void report_findings(const CheckResult& result, vtkv::Report& report);

}  // namespace swimstore
