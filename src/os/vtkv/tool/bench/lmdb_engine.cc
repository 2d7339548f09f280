// SPDX-License-Identifier: LGPL-2.1-or-later
// LMDB. Built when the packaged library is there.
#include <lmdb.h>

#include <algorithm>

#include "vtkv/tool/bench/engine.h"
#include "vtkv/tool/bench/peer_options.h"

namespace vtkv::bench {

namespace {

MDB_val value_of(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
std::string_view view(const MDB_val& value) { return {static_cast<const char*>(value.mv_data), value.mv_size}; }

Status translate(int code) {
  if (code == MDB_SUCCESS) {
    return {};
  }
  if (code == MDB_NOTFOUND) {
    return Status::not_found("no such key");
  }
  return Status::failed(std::string("lmdb: ") + mdb_strerror(code));
}

// A read transaction of its own, so that it sees one state.
class LmdbScan final : public Scan {
 public:
  LmdbScan(MDB_env* env, MDB_dbi database, std::string_view lower, std::string_view upper)
      : m_lower(lower), m_upper(upper) {
    m_code = mdb_txn_begin(env, nullptr, MDB_RDONLY, &m_transaction);
    if (m_code == MDB_SUCCESS) {
      m_code = mdb_cursor_open(m_transaction, database, &m_cursor);
    }
  }
  ~LmdbScan() override {
    if (m_cursor) {
      mdb_cursor_close(m_cursor);
    }
    if (m_transaction) {
      mdb_txn_abort(m_transaction);
    }
  }

  void seek_to_first() override { seek(m_lower); }
  void seek_to_last() override {
    m_key = value_of(m_upper);
    move(MDB_SET_RANGE);
    if (m_code == MDB_NOTFOUND) {
      move(MDB_LAST);
    } else {
      move(MDB_PREV);
    }
  }
  // An empty key is no key to LMDB.
  void seek(std::string_view target) override {
    m_key = value_of(target);
    move(target.empty() ? MDB_FIRST : MDB_SET_RANGE);
  }
  bool valid() const override { return m_code == MDB_SUCCESS && view(m_key) >= m_lower && view(m_key) < m_upper; }
  void next() override { move(MDB_NEXT); }
  void previous() override { move(MDB_PREV); }
  std::string_view key() const override { return view(m_key); }
  std::string_view value() const override { return view(m_value); }
  Status status() const override { return m_code == MDB_NOTFOUND ? Status() : translate(m_code); }

 private:
  void move(MDB_cursor_op operation) {
    if (m_cursor) {
      m_code = mdb_cursor_get(m_cursor, &m_key, &m_value, operation);
    }
  }

  const std::string m_lower, m_upper;
  MDB_txn* m_transaction = nullptr;
  MDB_cursor* m_cursor = nullptr;
  int m_code = MDB_SUCCESS;
  MDB_val m_key{}, m_value{};
};

class LmdbEngine final : public Engine {
 public:
  ~LmdbEngine() override {
    if (m_env) {
      mdb_env_close(m_env);
    }
  }

  Status open(const EngineSettings& settings) {
    VTKV_RETURN_IF_ERROR(translate(mdb_env_create(&m_env)));
    const uint64_t map_bytes = std::max(peer::kMapBytesMin, peer::kMapTimesData * settings.data_bytes);
    VTKV_RETURN_IF_ERROR(translate(mdb_env_set_mapsize(m_env, map_bytes)));
    VTKV_RETURN_IF_ERROR(translate(mdb_env_set_maxreaders(m_env, 256)));
    const unsigned flags = MDB_NORDAHEAD | MDB_NOTLS | (settings.sync ? 0 : MDB_NOSYNC);
    VTKV_RETURN_IF_ERROR(translate(mdb_env_open(m_env, settings.path.c_str(), flags, 0644)));
    return update([this](MDB_txn* transaction) { return mdb_dbi_open(transaction, nullptr, MDB_CREATE, &m_database); });
  }

  Status put(std::string_view key, std::string_view value) override { return put_many({{key, value}}); }
  Status put_many(const std::vector<KeyValue>& entries) override {
    return update([&](MDB_txn* transaction) {
      for (const KeyValue& entry : entries) {
        MDB_val key = value_of(entry.key), value = value_of(entry.value);
        if (const int code = mdb_put(transaction, m_database, &key, &value, 0); code != MDB_SUCCESS) {
          return code;
        }
      }
      return MDB_SUCCESS;
    });
  }
  Status remove(std::string_view key) override {
    return update([&](MDB_txn* transaction) {
      MDB_val found = value_of(key);
      const int code = mdb_del(transaction, m_database, &found, nullptr);
      return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
    });
  }
  Status remove_range(std::string_view begin, std::string_view end) override {
    return update([&](MDB_txn* transaction) {
      MDB_cursor* cursor = nullptr;
      int code = mdb_cursor_open(transaction, m_database, &cursor);
      if (code != MDB_SUCCESS) {
        return code;
      }
      MDB_val key = value_of(begin), value{};
      code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
      while (code == MDB_SUCCESS && view(key) < end) {
        code = mdb_cursor_del(cursor, 0);
        if (code == MDB_SUCCESS) {
          code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
        }
      }
      mdb_cursor_close(cursor);
      return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
    });
  }
  Status get(std::string_view key, std::string* value) override {
    MDB_txn* transaction = nullptr;
    VTKV_RETURN_IF_ERROR(translate(mdb_txn_begin(m_env, nullptr, MDB_RDONLY, &transaction)));
    MDB_val wanted = value_of(key), found{};
    const int code = mdb_get(transaction, m_database, &wanted, &found);
    if (code == MDB_SUCCESS) {
      value->assign(view(found));
    }
    mdb_txn_abort(transaction);
    return translate(code);
  }
  std::unique_ptr<Scan> new_scan(std::string_view lower, std::string_view upper, ScanLength) override {
    return std::make_unique<LmdbScan>(m_env, m_database, lower, upper);
  }
  Status settle() override { return translate(mdb_env_sync(m_env, 1)); }
  EngineReport report() override { return {}; }

 private:
  template <typename Function>
  Status update(Function&& function) {
    MDB_txn* transaction = nullptr;
    VTKV_RETURN_IF_ERROR(translate(mdb_txn_begin(m_env, nullptr, 0, &transaction)));
    if (const int code = function(transaction); code != MDB_SUCCESS) {
      mdb_txn_abort(transaction);
      return translate(code);
    }
    return translate(mdb_txn_commit(transaction));
  }

  MDB_env* m_env = nullptr;
  MDB_dbi m_database = 0;
};

}  // namespace

Status open_lmdb(const EngineSettings& settings, std::unique_ptr<Engine>* engine) {
  auto opened = std::make_unique<LmdbEngine>();
  VTKV_RETURN_IF_ERROR(opened->open(settings));
  *engine = std::move(opened);
  return {};
}

}  // namespace vtkv::bench
