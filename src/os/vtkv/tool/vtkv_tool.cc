// SPDX-License-Identifier: LGPL-2.1-or-later
// vtkv-tool: looks at a database, and does a few things to it. doc/vtkv-tool.md is its manual.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>

#include "vtkv/program_version.h"
#include "vtkv/tool/database_commands.h"
#include "vtkv/tool/inspect.h"
#include "vtkv/tool/notation.h"
#include "vtkv/tool/output_file.h"

namespace vtkv {
namespace {

enum ExitCode { kDone = 0, kNo = 1, kUsage = 2, kFailed = 3 };

struct Arguments {
  bool json = false;
  std::string directory, key, value, out;
  std::string lower, upper;
  bool has_upper = false, reverse = false, operations = false, entries = false, full = false;
  uint64_t limit = UINT64_MAX;
  std::optional<uint64_t> run_id;
  Options options;  // of a database to be made
  DefragmentOptions defragment;
};

class Tool {
 public:
  explicit Tool(const Arguments& arguments)
      : m_arguments(arguments),
        m_report(arguments.json ? make_json_report(&std::cout) : make_text_report(&std::cout)) {}

  // Runs a command and says what came of it, for the shell.
  int run(const std::function<Status(Tool&)>& command) {
    const Status status = command(*this);
    if (status.ok()) {
      m_report->finish();
      if (!std::cout) {
        std::cerr << "vtkv-tool: cannot write to standard output\n";
        return kFailed;
      }
      return m_damaged ? kNo : kDone;
    }
    m_report->fail(status.message());
    std::cerr << "vtkv-tool: " << status.message() << "\n";
    return m_absent ? kNo : m_bad_syntax ? kUsage : kFailed;
  }

  Status list() { return range(false); }
  Status scan() { return range(true); }

  Status get() {
    std::string key;
    VTKV_RETURN_IF_ERROR(decode(m_arguments.key, &key));
    VTKV_RETURN_IF_ERROR(open_to_read());
    if (!m_arguments.out.empty()) {
      return get_to_file(key);
    }
    const Status status = report_value(m_db.get(), key, *m_report);
    m_absent = status.is_not_found();
    return status;
  }

  Status stats() {
    {
      std::unique_ptr<Inspection> inspection;
      VTKV_RETURN_IF_ERROR(Inspection::open(posix_env(), m_arguments.directory, &inspection));
      inspection->describe(*m_report);
    }
    VTKV_RETURN_IF_ERROR(open_to_read());
    report_statistics(*m_db, *m_report);
    return {};
  }

  Status verify() {
    const Status status = open_to_read();
    if (status.is_corruption()) {
      m_absent = true;  // it is an answer: damaged
      m_report->field("damaged", true);
      return status;
    }
    VTKV_RETURN_IF_ERROR(status);
    report_damage(m_db.get(), *m_report, &m_damaged);
    return {};
  }

  Status dump_log() {
    return inspect([&](Inspection& files) { return files.dump_log(m_arguments.operations, *m_report); });
  }
  Status dump_zone() {
    return inspect([&](Inspection& files) { return files.dump_zones(*m_report); });
  }
  Status dump_run() {
    return inspect(
        [&](Inspection& files) { return files.dump_runs(m_arguments.run_id, m_arguments.entries, *m_report); });
  }
  Status dump_filter() {
    return inspect([&](Inspection& files) { return files.dump_filters(m_arguments.run_id, *m_report); });
  }

  Status create() { return DB::create(posix_env(), m_arguments.directory, m_arguments.options); }

  Status upgrade() {
    bool changed = false;
    VTKV_RETURN_IF_ERROR(check_may_change(posix_env(), m_arguments.directory));
    VTKV_RETURN_IF_ERROR(DB::upgrade(posix_env(), m_arguments.directory, Options(), &changed));
    m_report->field("upgraded", changed);
    return {};
  }

  Status put() {
    std::string key, value;
    VTKV_RETURN_IF_ERROR(decode(m_arguments.key, &key));
    VTKV_RETURN_IF_ERROR(decode(m_arguments.value, &value));
    VTKV_RETURN_IF_ERROR(open_to_change(posix_env(), m_arguments.directory, &m_db));
    WriteBatch batch;
    batch.put(key, value);
    return m_db->write(std::move(batch));
  }

  Status remove() {
    std::string key;
    VTKV_RETURN_IF_ERROR(decode(m_arguments.key, &key));
    VTKV_RETURN_IF_ERROR(open_to_change(posix_env(), m_arguments.directory, &m_db));
    WriteBatch batch;
    batch.remove(key);
    return m_db->write(std::move(batch));
  }

  Status load() {
    VTKV_RETURN_IF_ERROR(open_to_change(posix_env(), m_arguments.directory, &m_db));
    uint64_t count = 0;
    VTKV_RETURN_IF_ERROR(load_lines(m_db.get(), std::cin, &count, &m_bad_syntax));
    m_report->field("loaded", count);
    // A stream that is synchronized with it takes an error for the end.
    return std::ferror(stdin) != 0 ? Status::from_errno(EIO, "standard input cannot be read to its end") : Status();
  }

  Status compact() {
    return change([](DB& db) { return db.compact(); });
  }

  Status collect_garbage() {
    return change([this](DB& db) { return db.collect_garbage(m_arguments.full); });
  }

  Status defragment() {
    VTKV_RETURN_IF_ERROR(open_to_change(posix_env(), m_arguments.directory, &m_db));
    const DBStatistics before = m_db->statistics();
    VTKV_RETURN_IF_ERROR(defragment_at_rest(m_db.get(), m_arguments.defragment));
    report_zones(before, m_db->statistics(), *m_report);
    return {};
  }

 private:
  Status decode(const std::string& text, std::string* bytes) {
    const Status status = from_notation(text, bytes);
    m_bad_syntax = !status.ok();
    return status;
  }

  Status open_to_read() { return DB::open_read_only(posix_env(), m_arguments.directory, Options(), &m_db); }

  Status range(bool values) {
    ScanRange range;
    VTKV_RETURN_IF_ERROR(decode(m_arguments.lower, &range.lower));
    if (m_arguments.has_upper) {
      VTKV_RETURN_IF_ERROR(decode(m_arguments.upper, &range.upper.emplace()));
    }
    range.limit = m_arguments.limit;
    range.reverse = m_arguments.reverse;
    VTKV_RETURN_IF_ERROR(open_to_read());
    return report_range(m_db.get(), range, values, *m_report);
  }

  Status get_to_file(const std::string& key) {
    std::string value;
    const Status status = m_db->get(key, &value);
    m_absent = status.is_not_found();
    if (m_absent) {
      return Status::not_found("there is no key " + to_notation(key));
    }
    VTKV_RETURN_IF_ERROR(status);
    return write_output_file(m_arguments.out, value);
  }

  Status inspect(const std::function<Status(Inspection&)>& dump) {
    std::unique_ptr<Inspection> inspection;
    VTKV_RETURN_IF_ERROR(Inspection::open(posix_env(), m_arguments.directory, &inspection));
    return dump(*inspection);
  }

  Status change(const std::function<Status(DB&)>& work) {
    VTKV_RETURN_IF_ERROR(open_to_change(posix_env(), m_arguments.directory, &m_db));
    const DBStatistics before = m_db->statistics();
    VTKV_RETURN_IF_ERROR(work(*m_db));
    report_change(before, m_db->statistics(), *m_report);
    return {};
  }

  const Arguments& m_arguments;
  const std::unique_ptr<Report> m_report;
  std::unique_ptr<DB> m_db;
  bool m_absent = false, m_damaged = false, m_bad_syntax = false;
};

// The words that --help adds to what CLI11 makes of the options.
constexpr char kFooter[] =
    "Keys and values are printed, and given, as text: printable ASCII stands for itself, a backslash is \\\\,\n"
    "any other byte \\xHH. Quote them from the shell.\n\n"
    "All but create, upgrade, put, remove, load, compact, gc and defragment change nothing on disk. A database in\n"
    "use cannot be opened.\n\n"
    "Exit status: 0 done; 1 no such key, or damage was found; 2 wrong usage; 3 the database cannot be opened,\n"
    "read or written. Errors go to standard error, in one line.";

class CommandLine {
 public:
  CommandLine() : m_app("Looks at a database of the vtkv engine", "vtkv-tool") {
    m_app.require_subcommand(1);
    m_app.footer(kFooter);
    m_app.set_version_flag("--version", version_text("vtkv-tool", format_support()), "print versions and exit");
    m_app.fallthrough();
    m_app.add_flag("--json", m_arguments.json, "print one JSON object instead of text");
    add_reading();
    add_dumps();
    add_changing();
  }

  int parse_and_run(int argc, char** argv) {
    try {
      m_app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0 && std::find(argv, argv + argc, std::string_view("--json")) != argv + argc) {
        make_json_report(&std::cout)->fail(error.what());
      }
      return m_app.exit(error) == 0 ? kDone : kUsage;
    }
    m_arguments.has_upper = m_upper_options[0]->count() + m_upper_options[1]->count() > 0;
    return Tool(m_arguments).run(m_command);
  }

 private:
  using Command = Status (Tool::*)();

  CLI::App* add(CLI::App& parent, const char* name, const char* description, Command command) {
    CLI::App* one = parent.add_subcommand(name, description);
    one->add_option("directory", m_arguments.directory, "of the database")->required();
    one->fallthrough();
    one->callback([this, command] { m_command = [command](Tool& tool) { return (tool.*command)(); }; });
    return one;
  }

  void add_range(CLI::App* one, int number) {
    one->add_option("--from", m_arguments.lower, "the least key, included");
    m_upper_options[number] = one->add_option("--to", m_arguments.upper, "the end, excluded");
    one->add_option("--limit", m_arguments.limit, "at most that many keys");
    one->add_flag("--reverse", m_arguments.reverse, "the greatest key first");
  }

  void add_reading() {
    add_range(add(m_app, "list", "print keys, one per line", &Tool::list), 0);
    add_range(add(m_app, "scan", "print keys and values, a tab between them", &Tool::scan), 1);
    CLI::App* get = add(m_app, "get", "print the value of a key", &Tool::get);
    get->add_option("key", m_arguments.key)->required();
    get->add_option("--out", m_arguments.out, "write the value's bytes to this file instead");
    add(m_app, "stats", "print identity, geometry, checkpoints and sizes", &Tool::stats);
    add(m_app, "verify", "read everything and check it", &Tool::verify);
  }

  void add_dumps() {
    CLI::App& dump = *m_app.add_subcommand("dump", "print the files as they lie on disk");
    dump.require_subcommand(1);
    dump.fallthrough();
    add(dump, "log", "segments and records", &Tool::dump_log)
        ->add_flag("--operations", m_arguments.operations, "also what the records say");
    add(dump, "zone", "how much of each zone is in use", &Tool::dump_zone);
    CLI::App* run = add(dump, "run", "the runs of the tree, newest first", &Tool::dump_run);
    run->add_option("--run", m_arguments.run_id, "this one only");
    run->add_flag("--entries", m_arguments.entries, "also every entry, tombstones included");
    add(dump, "filter", "the filters of the runs", &Tool::dump_filter)
        ->add_option("--run", m_arguments.run_id, "of this one only");
  }

  void add_changing() {
    CLI::App* create = add(m_app, "create", "make an empty database in a new or empty directory", &Tool::create);
    Geometry& geometry = m_arguments.options.geometry;
    create->add_option("--log-segment-bytes", geometry.log_segment_bytes);
    create->add_option("--zone-bytes", geometry.zone_bytes);
    create->add_option("--block-bytes", geometry.block_bytes);
    create->add_flag("!--no-compression", m_arguments.options.compress_blocks,
                     "blocks of the tree stay as they are, and programs before 0.8 can read them");
    add(m_app, "upgrade", "give the database all features that this program knows, so that older ones refuse it",
        &Tool::upgrade);
    CLI::App* put = add(m_app, "put", "set a key to a value, durably", &Tool::put);
    put->add_option("key", m_arguments.key)->required();
    put->add_option("value", m_arguments.value)->required();
    add(m_app, "remove", "remove a key, durably", &Tool::remove)->add_option("key", m_arguments.key)->required();
    add(m_app, "load", "put what scan printed, from standard input", &Tool::load);
    add(m_app, "compact", "write the log's contents to the tree and compact it into one run", &Tool::compact);
    add(m_app, "gc", "give back log space of values that nothing points to any more", &Tool::collect_garbage)
        ->add_flag("--full", m_arguments.full, "after a compact, in every segment that is worth it");
    CLI::App* defragment =
        add(m_app, "defragment", "empty zones that are little used, or used in small fragments", &Tool::defragment);
    DefragmentOptions& defragment_options = m_arguments.defragment;
    defragment->add_option("--gain", defragment_options.gain_min, "bytes gained for each byte moved, at least")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    defragment->add_option("--bytes-per-second", defragment_options.bytes_per_second, "moved; 0: no limit")
        ->capture_default_str();
  }

  Arguments m_arguments;
  CLI::App m_app;
  CLI::Option* m_upper_options[2] = {};
  std::function<Status(Tool&)> m_command;
};

}  // namespace
}  // namespace vtkv

int main(int argc, char** argv) { return vtkv::CommandLine().parse_and_run(argc, argv); }
