// SPDX-License-Identifier: LGPL-2.1-or-later
// ceph-swimstore-tool: makes, looks at, checks and repairs a SwimStore while no OSD uses it.
// doc/ceph-swimstore-tool.md is its manual.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>

#include "common/ceph_argparse.h"
#include "global/global_init.h"
#include "swimstore/format/collection_name.h"
#include "swimstore/fsck/repair.h"
#include "swimstore/move/group_balance.h"
#include "swimstore/ops/options.h"
#include "swimstore/program_version.h"
#include "swimstore/swimstore.h"
#include "swimstore/tool/directory_owner.h"
#include "swimstore/tool/object_transfer.h"
#include "swimstore/tool/store_commands.h"
#include "vtkv/tool/inspect.h"
#include "vtkv/util/host_remedy.h"

namespace swimstore {
namespace {

using vtkv::Status;

enum ExitCode { kClean = 0, kFindings = 1, kFailed = 2 };

struct Arguments {
  std::string format = "human";
  std::string conf;
  std::vector<std::string> options;  // name=value, of Ceph's configuration
  std::string path;
  std::optional<uint32_t> cube;
  bool deep = false;
  std::string fsid, collection, object, slot, file;
  bool collections = false, quarantined_entries = false, operations = false, force = false;
  bool only_copies = false, salvage = false, doubtful = false;
  std::optional<uint32_t> target;  // a cube, or how many
  bool dry_run = false;
  bool back = false;
  bool list_lost = false;  // --quarantined-entries, by the name that it had
};

class Tool {
 public:
  explicit Tool(const Arguments& arguments)
      : m_arguments(arguments),
        m_report(arguments.format == "json" ? vtkv::make_json_report(&std::cout) : vtkv::make_text_report(&std::cout)) {
  }

  // Runs a command and says what came of it, for the shell.
  int run(const std::function<Status(Tool&)>& command) {
    const Status status = vtkv::with_host_remedy(command(*this), m_arguments.path);
    if (!status.ok()) {
      m_report->fail(status.message());
      std::cerr << "ceph-swimstore-tool: " << status.message() << "\n";
      return kFailed;
    }
    m_report->finish();
    if (!std::cout) {
      std::cerr << "ceph-swimstore-tool: cannot write to standard output\n";
      return kFailed;
    }
    return m_found ? kFindings : kClean;
  }

  Status mkfs() {
    SwimStore store(context(), m_arguments.path);
    uuid_d fsid;
    if (!m_arguments.fsid.empty()) {
      if (!fsid.parse(m_arguments.fsid.c_str())) {
        return Status::invalid_argument("--fsid '" + m_arguments.fsid + "' is no UUID");
      }
      store.set_fsid(fsid);
    }
    give_to_owner_of_store(context()->_conf.get_val<std::string>("swimstore_metadata_path"), m_arguments.path);
    VTKV_RETURN_IF_ERROR(store.make());
    m_report->field("fsid", store.get_fsid().to_string());
    return {};
  }

  Status info() {
    return look([this](StoreFiles& files) { return report_info(files, upgrade_options(), *m_report); });
  }
  Status list() {
    if (m_arguments.list_lost) {
      return Status::invalid_argument(
          "--lost is called --quarantined-entries now: it prints the entries of the tree "
          "that repair quarantined");
    }
    return look([this](StoreFiles& files) {
      return m_arguments.quarantined_entries ? list_quarantined_entries(files, *m_report)
             : m_arguments.collections       ? list_collections(files, *m_report)
                                             : list_objects(files, m_arguments.collection, *m_report);
    });
  }
  Status dump_superblock() {
    return look([this](StoreFiles& files) {
      swimstore::dump_superblock(files, *m_report);
      return Status();
    });
  }
  Status dump_container() {
    return look([this](StoreFiles& files) { return dump_containers(files, *m_report); });
  }
  Status dump_slot() {
    return look([this](StoreFiles& files) {
      return swimstore::dump_slot(files, m_arguments.slot, m_arguments.file, *m_report);
    });
  }
  Status dump_onode() {
    return look([this](StoreFiles& files) { return swimstore::dump_onode(files, m_arguments.object, *m_report); });
  }
  Status dump_log() {
    return look([this](StoreFiles& files) {
      VTKV_RETURN_IF_ERROR(files.check_only_cube());
      VTKV_RETURN_IF_ERROR(files.check_features());
      std::unique_ptr<vtkv::Inspection> database;
      VTKV_RETURN_IF_ERROR(vtkv::Inspection::open(files.env(), files.database_path(), &database));
      return database->dump_log(m_arguments.operations, *m_report);
    });
  }

  Status fsck() {
    VTKV_RETURN_IF_ERROR(check_cube());
    SwimStore store(context(), m_arguments.path);
    CheckResult result;
    VTKV_RETURN_IF_ERROR(store.check({.deep = m_arguments.deep, .cube = m_arguments.cube}, &result));
    report_findings(result, *m_report);
    m_found = result.errors > 0;
    return {};
  }

  Status repair() {
    VTKV_RETURN_IF_ERROR(check_cube());
    SwimStore store(context(), m_arguments.path);
    std::vector<Repaired> changes;
    CheckResult result;
    const Status status =
        store.repair({.deep = m_arguments.deep, .only_copies = m_arguments.only_copies, .cube = m_arguments.cube},
                     &changes, &result);
    report_repairs(changes, *m_report);
    VTKV_RETURN_IF_ERROR(status);
    report_findings(result, *m_report);
    m_found = result.errors > 0;
    return {};
  }

  Status export_all() {
    m_purpose = m_arguments.salvage ? StoreFiles::Purpose::salvage : StoreFiles::Purpose::look;
    return look([this](StoreFiles& files) {
      VTKV_RETURN_IF_ERROR(check_names_a_copy(files, m_arguments.collection));
      // An earlier archive, which may be better than what can be read now, stays until this one is whole.
      std::error_code ignored;
      const std::filesystem::path target(m_arguments.file);
      const bool is_file =
          !std::filesystem::exists(target, ignored) || std::filesystem::is_regular_file(target, ignored);
      const std::string name = m_arguments.file + (is_file ? ".partial" : "");
      const mode_t mask = ::umask(0077);  // it holds what the store's files hold, which are their owner's alone
      std::ofstream out(name, std::ios::binary | std::ios::trunc);
      ::umask(mask);
      if (!out) {
        return Status::from_errno(errno, "cannot write " + name);
      }
      if (is_file && ::chmod(name.c_str(), 0600) != 0) {
        return Status::from_errno(errno, "cannot make " + name + " its owner's alone to read");
      }
      TransferResult result;
      Status status = export_objects(files, m_arguments.collection, name, &out, &result);
      if (status.ok() && is_file) {
        status = make_durable(name);
      }
      if (status.ok() && is_file) {
        status =
            ::rename(name.c_str(), target.c_str()) == 0 ? Status() : Status::from_errno(errno, "cannot rename " + name);
      }
      if (status.ok() && is_file) {
        status = make_durable(target.has_parent_path() ? target.parent_path().string() : ".");
      }
      if (status.ok() || result.collections > 0) {
        report_transfer(result);
      }
      if (!status.ok() && result.objects > 0 && std::filesystem::exists(name, ignored) &&
          is_file) {  // the best that there is, of a dying disk
        return status.with_message(
            fmt::format("{}; what was written until then is in {}: rename it if it is needed, for the next export to "
                        "{} writes over it; otherwise remove it",
                        status.message(), name, m_arguments.file));
      }
      return status;
    });
  }

  Status import_all() {
    std::ifstream in(m_arguments.file, std::ios::binary);
    if (!in) {
      return Status::from_errno(errno, "cannot read " + m_arguments.file);
    }
    SwimStore store(context(), m_arguments.path);
    const std::string archive = std::filesystem::absolute(m_arguments.file).lexically_normal().string();
    bool again = false;
    VTKV_RETURN_IF_ERROR(store.begin_import(archive, &again));
    TransferResult result;
    std::vector<std::string> left;
    Status status = import_objects(store, m_arguments.file, &in, m_arguments.doubtful, &result);
    const bool changed_nothing = !again && result.objects == 0 && result.collections == 0;
    if (status.ok() || changed_nothing) {
      const Status ended = store.end_import(archive, &left);
      status = status.ok() ? ended : status;
    }
    store.umount();
    if (status.ok() || result.objects > 0 || result.collections > 0) {
      report_transfer(result);
    }
    if (status.ok() && !left.empty()) {
      m_found = true;  // the store does not mount
      m_report->field("still_unfinished",
                      fmt::format("the import of {}: run it again. What is this very archive by another path, take its "
                                  "line out of {}/import_unfinished",
                                  fmt::join(left, " and of "), m_arguments.path));
    }
    return status;
  }

  Status put_back() {
    VTKV_RETURN_IF_ERROR(check_whole_store());
    SwimStore store(context(), m_arguments.path);
    uint64_t entries = 0, left = 0;
    std::vector<Repaired> changes;
    CheckResult result;
    VTKV_RETURN_IF_ERROR(store.put_back(&entries, &left, &changes, &result));
    m_report->field("entries_put_back", entries);
    m_report->field("entries_left", left);
    if (entries > 0) {
      m_report->field("next",
                      "an object that clients have removed since is back, too: 'ceph pg deep-scrub' and 'ceph pg "
                      "repair' each PG of this OSD before clients read from it");
    }
    report_repairs(changes, *m_report);
    report_findings(result, *m_report);
    m_found = result.errors > 0;
    return {};
  }

  Status upgrade() {
    VTKV_RETURN_IF_ERROR(check_whole_store());
    SwimStore store(context(), m_arguments.path);
    Superblock before, after;
    bool changed = false;
    VTKV_RETURN_IF_ERROR(store.upgrade(&before, &after, &changed));
    m_report->field("upgraded", changed);
    m_report->field("format_version_before", uint64_t{before.version});
    dump_features(after, *m_report);
    (void)look([this](StoreFiles& files) {  // the upgrade is done, whether it can be looked at or not
      report_database_formats(files, upgrade_options(), *m_report);
      return Status();
    });
    return {};
  }

  Status reset() {
    if (!m_arguments.cube) {
      return Status::invalid_argument("reset makes one cube anew: say which with --cube");
    }
    SwimStore store(context(), m_arguments.path);
    VTKV_RETURN_IF_ERROR(store.reset_cube(*m_arguments.cube, m_arguments.force));
    m_report->field("reset_cube", uint64_t{*m_arguments.cube});
    return {};
  }

  Status move() {
    VTKV_RETURN_IF_ERROR(check_whole_store());
    coll_t cid;
    if (!decode_collection_name(m_arguments.collection, &cid)) {
      return Status::invalid_argument("--collection '" + m_arguments.collection +
                                      "' names no collection; list --collections prints them");
    }
    SwimStore store(context(), m_arguments.path);
    GroupMove done;
    VTKV_RETURN_IF_ERROR(store.move_group(cid, *m_arguments.target, &done));
    m_report->field("moved", done.from != done.to);
    m_report->field("from_cube", uint64_t{done.from});
    m_report->field("to_cube", uint64_t{done.to});
    m_report->field("slot_bytes", done.slot_bytes);
    return {};
  }

  Status balance() {
    VTKV_RETURN_IF_ERROR(check_whole_store());
    SwimStore store(context(), m_arguments.path);
    m_report->begin_table(m_arguments.dry_run ? "planned_moves" : "moves", true);
    const Status status = store.balance_cubes(m_arguments.dry_run, [this](const GroupMove& one) {
      m_report->row({{"collection", one.cid.to_str()},
                     {"from_cube", uint64_t{one.from}},
                     {"to_cube", uint64_t{one.to}},
                     {"slot_bytes", one.slot_bytes}});
    });
    m_report->end_table();
    return status;
  }

  Status add_cubes() {
    VTKV_RETURN_IF_ERROR(check_whole_store());
    SwimStore store(context(), m_arguments.path);
    unsigned had = 0;
    VTKV_RETURN_IF_ERROR(store.add_cubes(*m_arguments.target, &had));
    m_report->field("data_cubes_before", uint64_t{had});
    m_report->field("data_cubes", uint64_t{*m_arguments.target});
    m_report->field("next", "placement groups stay where they are until they are moved: ceph-swimstore-tool balance " +
                                m_arguments.path);
    return {};
  }

  Status move_metadata() {
    VTKV_RETURN_IF_ERROR(check_whole_store());
    if (m_arguments.back == !m_arguments.file.empty()) {
      return Status::invalid_argument("move-metadata needs one of --to DIRECTORY and --back");
    }
    SwimStore store(context(), m_arguments.path);
    uint64_t bytes = 0;
    give_to_owner_of_store(m_arguments.file, m_arguments.path);
    VTKV_RETURN_IF_ERROR(store.move_metadata(m_arguments.file, &bytes));
    m_report->field("moved", bytes > 0);
    m_report->field("copied_bytes", bytes);
    return look([this](StoreFiles& files) { return report_metadata_place(files, *m_report); });
  }

  Status forget_lost() {
    return Status::invalid_argument(
        "forget-lost is called forget-quarantined-entries now: it removes for good the "
        "entries of the tree that repair quarantined");
  }
  Status forget_quarantined_entries() {
    VTKV_RETURN_IF_ERROR(check_whole_store());
    if (!m_arguments.force) {
      return Status::invalid_argument(
          "forget-quarantined-entries destroys what may be the last copy: look at "
          "list --quarantined-entries, then give --force");
    }
    SwimStore store(context(), m_arguments.path);
    uint64_t entries = 0;
    VTKV_RETURN_IF_ERROR(store.forget_quarantined(&entries));
    m_report->field("forgotten_entries", entries);
    if (entries > 0) {
      m_report->field("next", fmt::format("ceph-swimstore-tool repair {}: gives back the space that they owned; until "
                                          "then a check finds it leaked",
                                          m_arguments.path));
    }
    return {};
  }

 private:
  Status look(const std::function<Status(StoreFiles&)>& command) {
    std::unique_ptr<StoreFiles> files;
    VTKV_RETURN_IF_ERROR(StoreFiles::open(vtkv::posix_env(), m_arguments.path, m_arguments.cube, m_purpose, &files));
    return command(*files);
  }

  // Of the cubes' databases.
  vtkv::Options upgrade_options() {
    vtkv::Options options;
    options.compress_blocks = context()->_conf.get_val<bool>("swimstore_compress_metadata");
    return options;
  }

  // Of what concerns all cubes.
  Status check_whole_store() {
    const Status status = look([this](StoreFiles& files) {
      return m_arguments.cube && files.superblock().cubes > 1
                 ? Status::invalid_argument("--cube: this command takes all cubes of the store")
                 : Status();
    });
    return status.is_corruption() ? Status() : status;
  }

  // A damaged superblock is for the check to say.
  Status check_cube() {
    const Status status = look([](StoreFiles&) { return Status(); });
    return status.is_corruption() ? Status() : status;
  }

  void report_transfer(const TransferResult& result) {
    m_report->field("collections", result.collections);
    m_report->field("objects", result.objects);
    m_report->field("doubtful", result.doubtful);
    m_report->field("bytes", result.bytes);
    m_report->begin_table("omitted", false);
    for (const std::string& text : result.omitted) {
      m_report->row({{"text", text}});
    }
    if (result.untold > 0) {
      m_report->row({{"text", "and " + std::to_string(result.untold) + " more sentences about objects"}});
    }
    m_report->end_table();
    m_found = !result.omitted.empty();
  }

  // Whoever has an archive removes the store.
  static Status make_durable(const std::string& name) {
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    const bool done = file >= 0 && ::fsync(file) == 0;
    const int error = errno;
    if (file >= 0) {
      ::close(file);
    }
    return done ? Status() : Status::from_errno(error, "cannot make " + name + " durable");
  }

  static CephContext* context() { return g_ceph_context; }

  const Arguments& m_arguments;
  const std::unique_ptr<vtkv::Report> m_report;
  StoreFiles::Purpose m_purpose = StoreFiles::Purpose::look;
  bool m_found = false;
};

// The words that --help adds to what CLI11 makes of the options.
constexpr char kFooter[] =
    "PATH is the OSD's directory. A store in use is refused: stop its OSD first. fsck opens the store\n"
    "as a mount does, which recovers it, as do move, balance, add-cubes and move-metadata; info, list, dump and\n"
    "export change nothing on disk.\n\n"
    "Exit status: 0 done, and nothing wrong was found; 1 findings; 2 wrong usage, or the command could not be\n"
    "carried out. Errors go to standard error, in one line.";

class CommandLine {
 public:
  CommandLine() : m_app("Makes, looks at, checks and repairs a SwimStore while no OSD uses it", "ceph-swimstore-tool") {
    m_app.require_subcommand(1);
    m_app.footer(kFooter);
    m_app.set_version_flag("--version", version_text("ceph-swimstore-tool"), "print versions and exit");
    m_app.fallthrough();
    m_app.add_option("--format", m_arguments.format, "human or json")->check(CLI::IsMember({"human", "json"}));
    m_app.add_option("--conf,-c", m_arguments.conf, "take swimstore_* options from this file (default: none)");
    m_app.add_option("--set", m_arguments.options, "one of Ceph's options, as in swimstore_io_depth=64")
        ->allow_extra_args(false);
    add(m_app, "mkfs", "make a store; fine where it is made already", &Tool::mkfs)
        ->add_option("--fsid", m_arguments.fsid, "its UUID (default: the one in PATH/fsid, or a random one)");
    add(m_app, "info", "print identity, geometry and sizes", &Tool::info);
    CLI::App* fsck = add(m_app, "fsck", "check that everything agrees with everything else", &Tool::fsck);
    fsck->add_flag("--deep", m_arguments.deep, "also read all data, log and tree, and verify the checksums");
    CLI::App* repair = add(m_app, "repair", "fix what fsck finds, and say what is left", &Tool::repair);
    repair->add_flag("--deep", m_arguments.deep, "read all data in the check that ends it");
    repair->add_flag("--only-copies", m_arguments.only_copies, "quarantine, too, what no other OSD has a copy of");
    add(m_app, "put-back", "put back the entries of the tree that repair quarantined", &Tool::put_back);
    add(m_app, "forget-quarantined-entries", "remove for good the entries of the tree that repair quarantined",
        &Tool::forget_quarantined_entries)
        ->add_flag("--force", m_arguments.force, "it is known what this destroys");
    add(m_app, "forget-lost", "", &Tool::forget_lost)->group("")->fallthrough(false)->allow_extras();
    add(m_app, "reset", "make a cube anew, empty, that the OSD has abandoned", &Tool::reset)
        ->add_flag("--force", m_arguments.force, "it is known what this destroys");
    CLI::App* move = add(m_app, "move", "move a placement group to another cube", &Tool::move);
    move->add_option("--collection", m_arguments.collection, "the group, as list --collections prints it")->required();
    move->add_option("--to", m_arguments.target, "the cube")->required();
    add(m_app, "balance", "spread placement groups evenly over the cubes", &Tool::balance)
        ->add_flag("--dry-run", m_arguments.dry_run, "print what would be moved, and move nothing");
    add(m_app, "add-cubes", "spread new placement groups over more cubes", &Tool::add_cubes)
        ->add_option("--to", m_arguments.target, "over so many: a power of two, up to 64")
        ->required();
    CLI::App* metadata = add(m_app, "move-metadata", "move log and tree to another file system", &Tool::move_metadata);
    metadata->add_option("--to", m_arguments.file, "an empty directory there, from / on; made where it is missing");
    metadata->add_flag("--back", m_arguments.back, "back into the store's own directory instead");
    add(m_app, "upgrade", "give the store the newest format and all features, which older programs refuse",
        &Tool::upgrade);
    CLI::App* to_file =
        add(m_app, "export", "write objects to a file, also from a store that does not mount", &Tool::export_all);
    to_file->add_option("--collection", m_arguments.collection, "of this one only");
    to_file->add_option("--out", m_arguments.file, "the file")->required();
    to_file->add_flag("--salvage", m_arguments.salvage, "go on behind what cannot be read, and name it");
    CLI::App* from_file = add(m_app, "import", "add the objects of such a file", &Tool::import_all);
    from_file->add_option("--in", m_arguments.file, "the file")->required();
    from_file->add_flag("--doubtful", m_arguments.doubtful, "also those that export called doubtful");
    CLI::App* list = add(m_app, "list", "print the objects", &Tool::list);
    list->add_option("--collection", m_arguments.collection, "of this one only");
    list->add_flag("--collections", m_arguments.collections, "the collections instead");
    list->add_flag("--quarantined-entries", m_arguments.quarantined_entries,
                   "the entries of the tree that repair quarantined instead");
    list->add_flag("--lost", m_arguments.list_lost)->group("");
    add_dumps();
  }

  int parse_and_run(int argc, char** argv) {
    try {
      m_app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0 && asks_for_json(argc, argv)) {
        vtkv::make_json_report(&std::cout)->fail(error.what());
      }
      return m_app.exit(error) == 0 ? kClean : kFailed;
    }
    boost::intrusive_ptr<CephContext> cct;
    const Status made = make_context(&cct);
    return Tool(m_arguments).run([&](Tool& tool) { return made.ok() ? m_command(tool) : made; });
  }

 private:
  using Command = Status (Tool::*)();

  // Of words that cannot be parsed.
  static bool asks_for_json(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == "--format=json" || (word == "json" && std::string_view(argv[i - 1]) == "--format")) {
        return true;
      }
    }
    return false;
  }

  CLI::App* add(CLI::App& parent, const char* name, const char* description, Command command) {
    CLI::App* one = parent.add_subcommand(name, description);
    one->add_option("PATH", m_arguments.path, "the OSD's directory")->required();
    one->add_option("--cube", m_arguments.cube, "only this cube of the store (default: all that it has)");
    one->fallthrough();
    one->callback([this, command] { m_command = [command](Tool& tool) { return (tool.*command)(); }; });
    return one;
  }

  void add_dumps() {
    CLI::App& dump = *m_app.add_subcommand("dump", "print what lies on disk");
    dump.require_subcommand(1);
    dump.fallthrough();
    add(dump, "superblock", "the store's root, and whether its two copies are whole", &Tool::dump_superblock);
    add(dump, "container", "the containers and what the newest checkpoint says of their slots", &Tool::dump_container);
    CLI::App* slot = add(dump, "slot", "who refers to a slot, and whether its bytes match", &Tool::dump_slot);
    slot->add_option("SLOT", m_arguments.slot, "a container and a number, as in 64K/17")->required();
    slot->add_option("--out", m_arguments.file, "also write its bytes to this file");
    add(dump, "log", "segments and records of the log", &Tool::dump_log)
        ->add_flag("--operations", m_arguments.operations, "also what the records say");
    add(dump, "onode", "an object's record and extents", &Tool::dump_onode)
        ->add_option("OBJECT", m_arguments.object, "as list prints it, or its own name")
        ->required();
  }

  // Ceph's, with no configuration but what the arguments say. Of a file the OSD's own section counts, too.
  Status make_context(boost::intrusive_ptr<CephContext>* made) const {
    std::vector<std::string> words;
    if (!m_arguments.conf.empty()) {
      if (::access(m_arguments.conf.c_str(), R_OK) != 0) {  // Ceph passes over one that is not there
        return Status::from_errno(errno, "cannot read --conf " + m_arguments.conf);
      }
      words = {"--conf", m_arguments.conf};
      std::string osd;
      if (std::ifstream(m_arguments.path + "/whoami") >> osd) {
        words.insert(words.end(), {"--id", osd});
      }
    }
    ::unsetenv("CEPH_CONF");
    ::unsetenv("CEPH_ARGS");
    std::vector<const char*> for_ceph;
    for (const std::string& word : words) {
      for_ceph.push_back(word.c_str());
    }
    auto cct = global_init(nullptr, for_ceph, CEPH_ENTITY_TYPE_OSD, CODE_ENVIRONMENT_UTILITY_NODOUT,
                           CINIT_FLAG_NO_DEFAULT_CONFIG_FILE | CINIT_FLAG_NO_MON_CONFIG | CINIT_FLAG_NO_DAEMON_ACTIONS);
    for (const std::string& option : m_arguments.options) {
      const size_t equals = option.find('=');
      const std::string name = option.substr(0, equals);
      for (const auto& [was, is] : kRenamedOptions) {
        if (name == was) {
          return Status::invalid_argument(
              fmt::format("--set {}: option {} is called {} now: give that one", option, was, is));
        }
      }
      if (equals == std::string::npos || cct->_conf.set_val(name, option.substr(equals + 1)) < 0) {
        return Status::invalid_argument("--set " + option +
                                        ": give one of Ceph's options and a value for it, as in "
                                        "swimstore_io_depth=64");
      }
    }
    common_init_finish(cct.get());
    // Ceph's log makes a pipe at standard error fail rather than wait for its reader. It may be standard output, too.
    const int flags = fcntl(STDERR_FILENO, F_GETFL);
    if (flags >= 0) {
      fcntl(STDERR_FILENO, F_SETFL, flags & ~O_NONBLOCK);
    }
    *made = std::move(cct);
    return {};
  }

  Arguments m_arguments;
  CLI::App m_app;
  std::function<Status(Tool&)> m_command;
};

}  // namespace
}  // namespace swimstore

int main(int argc, char** argv) { return swimstore::CommandLine().parse_and_run(argc, argv); }
