// SPDX-License-Identifier: LGPL-2.1-or-later
#include "swimstore/testing/part_workload.h"

#include <fmt/format.h>

#include "swimstore/omap/omap_iterator.h"
#include "swimstore/swimstore.h"
#include "swimstore/transaction/placement.h"

namespace swimstore {

namespace {

using Transaction = ObjectStore::Transaction;

constexpr const char* kCount = "count";

// The one that lies in this cube, if there is one.
spg_t group(unsigned cube) {
  unsigned ps = 0;
  while (new_home(coll_t(spg_t(pg_t(ps, 1))), 1 + PartWorkload::kGroups) != cube) {
    ++ps;
  }
  return spg_t(pg_t(ps, 1));
}

ceph::bufferlist to_bufferlist(const std::string& text) {
  ceph::bufferlist out;
  out.append(text);
  return out;
}

}  // namespace

std::string to_string(const PartWorkload::Omap& omap) {
  std::string text;
  for (const auto& [key, value] : omap) {
    text += key + "=" + value + " ";
  }
  return text;
}

coll_t PartWorkload::collection(unsigned by) { return by == 0 ? coll_t::meta() : coll_t(group(by)); }

ghobject_t PartWorkload::object() { return ghobject_t(hobject_t(object_t("snapmapper"), "", 0, 0, -1, "")); }

ghobject_t PartWorkload::counter(unsigned by) {
  return by == 0 ? ghobject_t(hobject_t(object_t("counter"), "", 0, 0, -1, ""))
                 : ghobject_t(hobject_t(object_t("counter"), "", CEPH_NOSNAP, group(by).ps(), 1, ""));
}

Transaction PartWorkload::setup(unsigned by) {
  constexpr unsigned kPgBits = 2;
  Transaction txn;
  txn.create_collection(collection(by), by == 0 ? 0 : kPgBits);
  txn.touch(collection(by), counter(by));
  if (by == 0) {
    txn.touch(collection(by), object());
  }
  return txn;
}

std::vector<ObjectStore::CollectionHandle> PartWorkload::open(SwimStore& store) {
  std::vector<ObjectStore::CollectionHandle> handles;
  for (unsigned by = 0; by <= kGroups; ++by) {
    auto handle = store.open_collection(collection(by));
    handles.push_back(handle ? handle : store.create_new_collection(collection(by)));
  }
  return handles;
}

PartStep PartWorkload::next() {
  PartStep step;
  step.by = m_random() % (kGroups + 1);
  for (uint64_t left = 1 + m_random() % 3; left > 0; --left) {
    PartStep::Operation operation{.key = any_key(), .last = any_key(), .value = std::to_string(m_random() % 100000)};
    const uint64_t choice = m_random() % 16;
    if (step.by == 0 && choice < 5) {
      operation.kind = choice < 2   ? PartStep::Kind::remove_range
                       : choice < 4 ? PartStep::Kind::clear
                                    : PartStep::Kind::make_anew;
      if (operation.key > operation.last) {
        std::swap(operation.key, operation.last);
      }
    } else if (choice % 2 == 0) {
      operation.kind = PartStep::Kind::remove;
    }
    step.operations.push_back(std::move(operation));
  }
  return step;
}

Transaction PartWorkload::transaction(const PartStep& step, uint64_t number) {
  Transaction txn;
  const coll_t own = collection(0);
  for (const PartStep::Operation& operation : step.operations) {
    switch (operation.kind) {
      case PartStep::Kind::set:
        txn.omap_setkeys(own, object(),
                         std::map<std::string, ceph::bufferlist>{{operation.key, to_bufferlist(operation.value)}});
        break;
      case PartStep::Kind::remove:
        txn.omap_rmkeys(own, object(), std::set<std::string>{operation.key});
        break;
      case PartStep::Kind::remove_range:
        txn.omap_rmkeyrange(own, object(), operation.key, operation.last);
        break;
      case PartStep::Kind::clear:
        txn.omap_clear(own, object());
        break;
      case PartStep::Kind::make_anew:
        txn.remove(own, object());
        txn.touch(own, object());
        break;
    }
  }
  ceph::bufferlist count = to_bufferlist(std::to_string(number));
  txn.setattr(collection(step.by), counter(step.by), kCount, count);
  return txn;
}

void PartWorkload::apply(const PartStep& step, Omap* omap) {
  for (const PartStep::Operation& operation : step.operations) {
    switch (operation.kind) {
      case PartStep::Kind::set:
        (*omap)[operation.key] = operation.value;
        break;
      case PartStep::Kind::remove:
        omap->erase(operation.key);
        break;
      case PartStep::Kind::remove_range:
        omap->erase(omap->lower_bound(operation.key), omap->lower_bound(operation.last));
        break;
      case PartStep::Kind::clear:
      case PartStep::Kind::make_anew:
        omap->clear();
        break;
    }
  }
}

uint64_t PartWorkload::count(SwimStore& store, unsigned by, ObjectStore::CollectionHandle& collection) {
  ceph::bufferptr value;
  return store.getattr(collection, counter(by), kCount, value) < 0
             ? 0
             : std::stoull(std::string(value.c_str(), value.length()));
}

PartWorkload::Omap PartWorkload::read(SwimStore& store, ObjectStore::CollectionHandle& own, std::string* wrong) {
  Omap omap;
  ceph::bufferlist header;
  std::map<std::string, ceph::bufferlist> values;
  if (const int r = store.omap_get(own, object(), &header, &values); r < 0) {
    *wrong = fmt::format("the omap cannot be read: {}", r);
    return omap;
  }
  std::set<std::string> keys;
  for (const auto& [key, value] : values) {
    omap[key] = value.to_str();
    keys.insert(key);
  }
  std::map<std::string, ceph::bufferlist> each;
  std::set<std::string> asked = keys;
  for (unsigned number = 0; number < 30; ++number) {
    asked.insert("key_" + std::to_string(number));
  }
  if (store.omap_get_values(own, object(), asked, &each) < 0 || each.size() != values.size() ||
      !std::equal(each.begin(), each.end(), values.begin(), [](const auto& a, const auto& b) {
        return a.first == b.first && a.second.contents_equal(b.second);
      })) {
    *wrong = fmt::format("asked for one by one there are {} keys, and listed {}", each.size(), values.size());
  }
  const auto iterator = store.omap_iterator(own, object());
  for (const std::string& key : asked) {
    const auto at = omap.lower_bound(key);
    const auto after = omap.upper_bound(key);
    iterator->lower_bound(key);
    if (iterator->valid() != (at != omap.end()) || (iterator->valid() && iterator->key() != at->first)) {
      *wrong = fmt::format("lower_bound({}) is at another key", key);
    }
    iterator->upper_bound(key);
    if (iterator->valid() != (after != omap.end()) || (iterator->valid() && iterator->value() != after->second)) {
      *wrong = fmt::format("upper_bound({}) is at another key", key);
    }
  }
  return omap;
}

}  // namespace swimstore
