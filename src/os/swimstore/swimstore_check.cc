// SwimStore looked over while nobody uses it.

#include <climits>

#include <fmt/format.h>

#include "common/debug.h"
#include "swimstore/fsck/repair.h"
#include "swimstore/swimstore.h"
#include "swimstore/swimstore_mounted.h"

#define dout_context cct
#define dout_subsys SWIM_SUBSYS
#undef dout_prefix
#define dout_prefix *_dout << "swimstore(" << path << ") "

using swimstore::CheckResult;
using swimstore::FindingClass;
using swimstore::Fsck;
using swimstore::Repaired;
using vtkv::Status;

namespace {

// Each mends up to a thousand findings of one class.
constexpr unsigned kRepairPassesMax = 10000;

}  // namespace

int SwimStore::fsck(bool deep) {
  CheckResult result;
  if (const Status status = check({.deep = deep}, &result); !status.ok()) {
    return fail("fsck", status);
  }
  return static_cast<int>(std::min<uint64_t>(result.errors, INT_MAX));
}

Status SwimStore::check(const swimstore::FsckOptions& options, CheckResult* result) {
  const Status status = open(Purpose::check);
  if (status.is_corruption()) {
    derr << "fsck: " << status.message() << dendl;
    *result = {};
    result->findings.push_back({.kind = FindingClass::store_does_not_open, .text = std::string(status.message())});
    result->errors = 1;
    return {};
  }
  VTKV_RETURN_IF_ERROR(status);
  {
    Fsck fsck(m_mounted->context, m_mounted->objects, options);
    fsck.run();
    *result = fsck.result();
  }
  close();
  return {};
}

int SwimStore::repair(bool deep) {
  std::vector<Repaired> changes;
  CheckResult result;
  if (const Status status = mend(deep, &changes, &result); !status.ok()) {
    return fail("repair", status);
  }
  for (const Repaired& change : changes) {
    dout(0) << "repair: " << change.text << dendl;
  }
  return static_cast<int>(std::min<uint64_t>(result.errors, INT_MAX));
}

int SwimStore::quick_fix() { return repair(false); }

Status SwimStore::mend(bool deep, std::vector<Repaired>* changes, CheckResult* result) {
  swimstore::FsckOptions options;
  for (unsigned pass = 0; pass < kRepairPassesMax; ++pass) {
    if (!open(Purpose::check).ok()) {
      break;  // the check below says why
    }
    const size_t before = changes->size();
    FindingClass kind;
    Status status;
    bool due = false;
    {
      Fsck fsck(m_mounted->context, m_mounted->objects, options);
      fsck.run();
      swimstore::Repair repair(m_mounted->context, fsck);
      due = repair.next(&kind);
      if (due) {
        status = repair.mend(kind, changes);
      }
    }
    close();
    VTKV_RETURN_IF_ERROR(status);
    if (!due) {
      break;
    }
    if (changes->size() == before) {
      options.passed_over[static_cast<size_t>(kind)] += swimstore::kFindingsOfClassMax;
    }
  }
  return check({.deep = deep}, result);
}

Status SwimStore::forget_lost(uint64_t* entries) {
  VTKV_RETURN_IF_ERROR(open(Purpose::check));
  const Status status = swimstore::Repair::forget_lost(m_mounted->context, entries);
  close();
  return status;
}
