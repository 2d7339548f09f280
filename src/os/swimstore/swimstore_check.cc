// SPDX-License-Identifier: LGPL-2.1-or-later
// SwimStore looked over while nobody uses it.

#include <climits>
#include <optional>

#include <fmt/format.h>

#include "common/debug.h"
#include "swimstore/directory/store_directory.h"
#include "swimstore/fsck/check_at_rest.h"
#include "swimstore/fsck/repair.h"
#include "swimstore/isolation/damaged_cubes.h"
#include "swimstore/isolation/lost_groups.h"
#include "swimstore/ops/settings.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::CheckResult;
using swimstore::FindingClass;
using swimstore::Fsck;
using swimstore::FsckOptions;
using swimstore::Repaired;
using swimstore::RepairOptions;
using swimstore::StoreDirectory;
using swimstore::Superblock;
using vtkv::Status;

namespace {

// Each repairs up to a thousand findings of one class.
constexpr unsigned kRepairPassesMax = 10000;

Status find_cube(const std::string& path, unsigned cubes, std::optional<uint32_t> asked) {
  return !asked || *asked < cubes ? Status()
                                  : Status::invalid_argument(fmt::format("{} has no cube {}: it has {}, counted from 0",
                                                                         path, *asked, cubes));
}

}  // namespace

int SwimStore::fsck(bool deep) {
  CheckResult result;
  if (const Status status = check({.deep = deep}, &result); !status.ok()) {
    return fail("fsck", status);
  }
  return static_cast<int>(std::min<uint64_t>(result.errors, INT_MAX));
}

Status SwimStore::check(const FsckOptions& options, CheckResult* result) {
  const Status status = open(Purpose::check);
  if (status.is_corruption()) {
    derr << "fsck: " << status.message() << dendl;
    *result = {};
    result->findings.push_back({.kind = FindingClass::store_does_not_open, .text = std::string(status.message())});
    result->errors = 1;
    return {};
  }
  VTKV_RETURN_IF_ERROR(status);
  Status may = find_cube(path, m_mounted->cubes->size(), options.cube);
  may = may.ok() && options.deep ? check_compressors(m_mounted->context) : may;
  if (!may.ok()) {
    close();
    return may;
  }
  {
    FsckOptions asked = options;
    asked.may_hold_newer = m_mounted->read_only;
    *result = {};
    add_missing(options.cube, result);
    for (const auto& cube : m_mounted->context.cubes) {
      if (options.cube.value_or(cube->number) != cube->number) {
        continue;
      }
      *result += swimstore::check_at_rest(m_mounted->context, *cube, asked)->result();
    }
  }
  close();
  const auto add_first = [&](FindingClass kind, const std::string& text) {
    derr << text << dendl;
    result->findings.insert(result->findings.begin(), {.kind = kind, .text = text});
    ++result->errors;
  };
  StoreDirectory directory(m_env, path);
  if (directory.is_repair_unfinished()) {
    add_first(FindingClass::repair_unfinished,
              "a repair was begun and did not come to its end: the store does not mount before it has");
  }
  for (const std::string& archive : directory.unfinished_imports()) {
    add_first(FindingClass::import_unfinished,
              fmt::format("the import of {0} was begun and did not come to its end: objects of its placement groups "
                          "may be missing; the store does not mount before 'ceph-swimstore-tool import {1} --in {0}' "
                          "has",
                          archive, path));
  }
  return {};
}

// A cube that is abandoned is no error: nothing of the store lies in it any more.
void SwimStore::add_missing(std::optional<uint32_t> asked, CheckResult* result) {
  for (const auto& [cube, why] : m_mounted->cubes->missing()) {
    const bool is_abandoned = m_mounted->abandoned.contains(cube);
    if (asked.value_or(cube) != cube) {
      continue;
    }
    const std::string text =
        is_abandoned ? fmt::format(
                           "cube {} is abandoned, and not checked: {}. 'ceph-swimstore-tool reset {} --cube "
                           "{}' makes it anew",
                           cube, why, path, cube)
                     : fmt::format("cube {} does not open: {}", cube, why);
    derr << text << dendl;
    if (!is_abandoned) {
      result->findings.push_back({.kind = FindingClass::store_does_not_open, .cube = cube, .text = text});
      ++result->errors;
    }
  }
}

int SwimStore::repair(bool deep) {
  std::vector<Repaired> changes;
  CheckResult result;
  if (const Status status = repair({.deep = deep}, &changes, &result); !status.ok()) {
    return fail("repair", status);
  }
  for (const Repaired& change : changes) {
    dout(0) << "repair: " << change.text << dendl;
  }
  return static_cast<int>(std::min<uint64_t>(result.errors, INT_MAX));
}

int SwimStore::quick_fix() { return repair(false); }

namespace {

void pass_over(FindingClass kind, FsckOptions* options) {
  options->passed_over[static_cast<size_t>(kind)] = UINT64_MAX;
}

}  // namespace

Status SwimStore::hold_lock(const std::function<Status(StoreDirectory&)>& work) {
  StoreDirectory directory(m_env, path);
  swimstore::Settings settings;
  VTKV_RETURN_IF_ERROR(swimstore::Settings::read(cct, &settings));
  vtkv::FileSystemInfo host;
  VTKV_RETURN_IF_ERROR(directory.check_host(settings, &host));
  if (directory.has_superblock()) {  // without one there is nothing to be locked, nor made: what opens it says so
    VTKV_RETURN_IF_ERROR(directory.lock(&m_held_lock));
  }
  const Status status = work(directory);
  m_held_lock.reset();
  return status;
}

Status SwimStore::repair(const RepairOptions& options, std::vector<Repaired>* changes, CheckResult* result) {
  return hold_lock([&](StoreDirectory& directory) {
    FsckOptions checks{.cube = options.cube};
    if (!options.only_copies) {
      pass_over(FindingClass::only_copy_undecodable, &checks);
    }
    // Before anything is changed: the check behind it would refuse. That it does not open, repair_all() says.
    if (options.deep && open(Purpose::repair).ok()) {
      const Status may = check_compressors(m_mounted->context);
      close();
      VTKV_RETURN_IF_ERROR(may);
    }
    VTKV_RETURN_IF_ERROR(repair_all(checks, directory, changes));
    return check({.deep = options.deep, .cube = options.cube}, result);
  });
}

// Ok as well where the store, or a cube of it, does not open, which the check that follows says; but not where a newer
// program wrote it.
Status SwimStore::repair_all(const FsckOptions& checks, StoreDirectory& directory, std::vector<Repaired>* changes) {
  std::set<unsigned> ended;
  unsigned cube = checks.cube.value_or(0), cubes = 1;
  do {
    CubeRepair outcome = CubeRepair::cut_short;
    VTKV_RETURN_IF_ERROR(repair_cube(cube, checks, directory, changes, &cubes, &outcome));
    if (outcome == CubeRepair::cut_short) {
      return {};
    }
    if (outcome == CubeRepair::ended) {
      ended.insert(cube);
    }
  } while (!checks.cube && ++cube < cubes);
  // An earlier one may have been cut short in a cube that was not repaired now.
  return directory.end_repair(ended);
}

// *cubes: how many the store has.
Status SwimStore::repair_cube(unsigned number, const FsckOptions& checks, StoreDirectory& directory,
                              std::vector<Repaired>* changes, unsigned* cubes, CubeRepair* outcome) {
  FsckOptions options = checks;
  for (unsigned pass = 0; pass < kRepairPassesMax; ++pass) {
    if (const Status status = open(Purpose::repair); !status.ok()) {
      return status.code() == Status::Code::unsupported ? status : Status();
    }
    *cubes = m_mounted->cubes->size();
    if (const Status may = find_cube(path, *cubes, checks.cube); !may.ok()) {
      close();
      return may;
    }
    if (!m_mounted->context.cubes.has(number)) {
      *outcome = m_mounted->abandoned.contains(number) ? CubeRepair::ended
                 : pass == 0                           ? CubeRepair::left_out
                                                       : CubeRepair::cut_short;
      close();
      return {};
    }
    const size_t before = changes->size();
    FindingClass kind;
    Status status;
    bool due = false;
    {
      swimstore::StoreCube& cube = m_mounted->context.cubes[number];
      const std::unique_ptr<Fsck> fsck = swimstore::check_at_rest(m_mounted->context, cube, options);
      options.passes = fsck->counts().passes;
      swimstore::Repair repair(m_mounted->context, cube, *fsck);
      due = repair.next(&kind);
      if (due) {
        status = directory.begin_repair(number);
      }
      if (due && status.ok()) {
        status = repair.apply(kind, changes);
      }
    }
    close();
    VTKV_RETURN_IF_ERROR(status);
    if (!due) {
      *outcome = CubeRepair::ended;
      return {};
    }
    if (changes->size() == before) {
      options.passed_over[static_cast<size_t>(kind)] += swimstore::kFindingsOfClassMax;
    }
  }
  return {};
}

// Objects that still cannot be decoded stay: to quarantine them again is for repair. What nobody owns is quarantined
// again at once, for its slots would be taken for leaked.
Status SwimStore::put_back(uint64_t* entries, uint64_t* left, std::vector<Repaired>* changes, CheckResult* result) {
  return hold_lock([&](StoreDirectory& directory) {
    VTKV_RETURN_IF_ERROR(open(Purpose::repair));
    *entries = *left = 0;
    Status status = check_all_open("put-back has to end in all cubes");
    if (!status.ok()) {
      close();
      return status;
    }
    for (const auto& cube : m_mounted->context.cubes) {
      if (status.ok()) {
        status = directory.begin_repair(cube->number);
      }
      if (status.ok()) {
        status = swimstore::Repair::put_back(m_mounted->context, *cube, entries, left);
      }
    }
    close();
    VTKV_RETURN_IF_ERROR(status);
    FsckOptions checks;
    for (const FindingClass kind :
         {FindingClass::object_undecodable, FindingClass::only_copy_undecodable, FindingClass::extents_undecodable}) {
      pass_over(kind, &checks);
    }
    VTKV_RETURN_IF_ERROR(repair_all(checks, directory, changes));
    return check({}, result);
  });
}

// Begun and not ended, it would keep the store from going on without the cube.
Status SwimStore::check_all_open(const char* why) const {
  for (const auto& [cube, reason] : m_mounted->cubes->missing()) {
    if (!m_mounted->abandoned.contains(cube)) {
      return Status::failed(
          fmt::format("cube {} of {} does not open: {}. Nothing was changed: {}, but for those that are abandoned",
                      cube, path, reason, why));
    }
  }
  return {};
}

Status SwimStore::upgrade(Superblock* before, Superblock* after, bool* changed) {
  return hold_lock([&](StoreDirectory& directory) {
    swimstore::Settings settings;
    VTKV_RETURN_IF_ERROR(swimstore::Settings::read(cct, &settings));
    VTKV_RETURN_IF_ERROR(directory.read_superblock(before));
    VTKV_RETURN_IF_ERROR(open(Purpose::repair));  // what this program may write to, in all its parts
    const swimstore::MissingCubes missing = m_mounted->cubes->missing();
    close();
    if (!missing.empty()) {
      return Status::failed(
          fmt::format("cube {} of {} is missing: {}. Nothing was changed: upgrade the store when it is "
                      "whole",
                      missing.begin()->first, path, missing.begin()->second));
    }
    *after = *before;
    after->version = swimstore::kSuperblockVersion;
    after->features.add(swimstore::features_of(after->cubes));
    if (after->features.encode().size() > Superblock::kFeatureBytesMax) {
      return Status::corruption(fmt::format("{}/superblock: it names so many features that no program wrote it", path));
    }
    *changed = after->encode() != before->encode();
    const auto half_way = [](unsigned cubes, const Status& why) {
      return why.with_message(
          fmt::format("{}. The databases of cubes before {} are upgraded, and older programs refuse "
                      "the store: look at the disk, then run upgrade again",
                      why.message(), cubes));
    };
    for (unsigned cube = 0; cube < before->cubes; ++cube) {
      bool database_changed = false;
      const Status upgraded =
          vtkv::DB::upgrade(m_env, directory.database_path(cube),
                            settings.cube_options(/*single_flush=*/false).database, &database_changed);
      if (!upgraded.ok()) {
        return half_way(cube, upgraded);
      }
      *changed |= database_changed;
    }
    const Status written = after->encode() == before->encode() ? Status() : directory.write_superblock(*after);
    return written.ok() ? Status() : half_way(before->cubes, written);
  });
}

Status SwimStore::reset_cube(unsigned cube, bool force) {
  return hold_lock([&](StoreDirectory& directory) {
    Superblock superblock;
    VTKV_RETURN_IF_ERROR(directory.read_superblock(&superblock));
    VTKV_RETURN_IF_ERROR(find_cube(path, superblock.cubes, cube));
    swimstore::MissingCubes abandoned;
    VTKV_RETURN_IF_ERROR(swimstore::find_abandoned_cubes(directory, superblock.cubes, &abandoned));
    if (!abandoned.contains(cube)) {
      return Status::failed(
          fmt::format("cube {} of {} is not abandoned, or was made anew already; nothing was changed. Only an OSD that "
                      "runs with swimstore_mount_damaged_cubes=incomplete abandons a cube, when it is damaged{}",
                      cube, path, cube == 0 ? ", and never cube 0, which has what is the OSD's own" : ""));
    }
    // A crash may have come before its placement groups were made anew.
    VTKV_RETURN_IF_ERROR(open(Purpose::serve));
    const swimstore::StoreLayout layout = m_mounted->layout;
    std::vector<coll_t> unfilled;
    const Status filled = swimstore::find_unfilled_groups(m_mounted->context, &unfilled);
    const bool compressed = m_mounted->cubes->may_compress_blocks();
    close();
    VTKV_RETURN_IF_ERROR(filled);
    if (!unfilled.empty() && !force) {
      return Status::failed(fmt::format(
          "{} placement groups of {} are not whole yet, the first is {}, and cube {} may have what no other "
          "OSD has; nothing was changed. Start the OSD and wait until they are active+clean. Where other "
          "OSDs are known to have all, or 'export --salvage --cube {}' has saved it: --force",
          unfilled.size(), path, unfilled.front().to_str(), cube, cube));
    }
    swimstore::Settings settings;
    VTKV_RETURN_IF_ERROR(swimstore::Settings::read(cct, &settings));
    swimstore::CubeOptions options = options_of_cubes(settings, superblock, layout);
    options.database.compress_blocks = compressed;  // as cube 0, whatever the option says
    VTKV_RETURN_IF_ERROR(directory.empty_cube(cube));
    VTKV_RETURN_IF_ERROR(
        swimstore::CubeSet::create_one(m_env, directory.cubes_path(), options, superblock.cubes, cube));
    VTKV_RETURN_IF_ERROR(directory.mark_databases(superblock.cubes));
    // Should the removal of the mark not be durable, the cube is checked before it is used, not left out.
    VTKV_RETURN_IF_ERROR(directory.mark_cube(cube, {swimstore::CubeMark::State::suspect, "it was made anew"}));
    return directory.end_cube_mark(cube);
  });
}

Status SwimStore::forget_quarantined(uint64_t* entries) {
  VTKV_RETURN_IF_ERROR(open(Purpose::repair));
  *entries = 0;
  Status status = check_all_open("forget-quarantined-entries is for all cubes");
  for (const auto& cube : m_mounted->context.cubes) {
    if (status.ok()) {
      status = swimstore::Repair::forget_quarantined(m_mounted->context, *cube, entries);
    }
  }
  close();
  return status;
}
