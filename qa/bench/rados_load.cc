// SPDX-License-Identifier: LGPL-2.1-or-later
// Load on one pool, in the shape of `rados bench`: N whole objects in flight, for S seconds.
//
// Why not `rados bench` itself: it prints average and maximum latency only, cannot overwrite what it wrote in
// random order, and its start-up costs as much as a short phase. Every latency is kept here, so that percentiles
// are exact.
//
// Phases, run in the order given:
//   write      new objects, first fill
//   overwrite  the same objects in random order, whole
//   seq, rand  reads of them; each one is checked: its length, and that it holds what was written last
//   cold       the same, each object once, in random order
//   delete     all of them
//
// Output: one JSON object per phase and line. Exit status 1 when any operation failed or any data was wrong.

#include <rados/librados.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::string conf;
  std::string pool;
  std::string prefix = "load";
  std::vector<std::string> phases;
  std::vector<std::string> devices;  // /dev/loopN, counted together
  std::vector<std::string> processes;  // pids, counted together
  std::vector<std::string> sync_paths;  // file systems to sync before the last count
  std::string state;
  std::size_t size_bytes = 4096;
  std::size_t depth = 16;
  double seconds = 5;
  double fill_seconds = 0;  // of write, where not 0
  std::uint64_t fill_bytes_max = std::uint64_t{1} << 30;
  std::uint64_t seed = 1;
};

struct DeviceCounters {
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t flushes = 0;
};

// The fields are those of the kernel's Documentation/admin-guide/iostats.
DeviceCounters count_devices(const std::vector<std::string>& devices) {
  DeviceCounters sum;
  for (const auto& device : devices) {
    std::ifstream stat("/sys/block/" + device.substr(device.rfind('/') + 1) + "/stat");
    const std::vector<std::uint64_t> field{std::istream_iterator<std::uint64_t>(stat), {}};
    if (field.size() < 16) {
      std::cerr << "rados_load: " << device << ": no counters in /sys/block\n";
      std::exit(2);
    }
    sum.written_bytes += field[6] * 512;
    sum.read_bytes += field[2] * 512;
    sum.flushes += field[15];
  }
  return sum;
}

struct ProcessCounters {
  std::uint64_t processor_us = 0;
  std::map<std::string, std::uint64_t> switches;  // voluntary, by thread: it had to wait
  std::uint64_t page_faults = 0;  // minor
};

// The fields are those of proc_pid_stat(5), from the state on: a name in brackets stands before it.
void count_process(const std::string& pid, ProcessCounters* sum) {
  const std::filesystem::path folder = "/proc/" + pid;
  std::string line;
  std::getline(std::ifstream(folder / "stat"), line);
  std::istringstream after_name(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  const std::vector<std::string> field{std::istream_iterator<std::string>(after_name), {}};
  if (field.size() < 13) {
    std::cerr << "rados_load: no process " << pid << "\n";
    std::exit(2);
  }
  static const std::uint64_t us_per_tick = 1'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  sum->page_faults += std::stoull(field[7]);
  sum->processor_us += (std::stoull(field[11]) + std::stoull(field[12])) * us_per_tick;
  std::error_code gone;  // a thread may end meanwhile
  for (const auto& thread : std::filesystem::directory_iterator(folder / "task", gone)) {
    static constexpr std::string_view head = "voluntary_ctxt_switches:";
    std::ifstream status(thread.path() / "status");
    while (std::getline(status, line)) {
      if (line.starts_with(head)) {
        sum->switches[thread.path()] = std::stoull(line.substr(head.size()));
      }
    }
  }
}

// Without those of threads that have ended meanwhile.
std::uint64_t switches_since(const ProcessCounters& before, const ProcessCounters& now) {
  std::uint64_t sum = 0;
  for (const auto& [thread, switches] : now.switches) {
    const auto found = before.switches.find(thread);
    const bool is_it = found != before.switches.end() && found->second <= switches;  // else another one has its number
    sum += switches - (is_it ? found->second : 0);
  }
  return sum;
}

ProcessCounters count_processes(const std::vector<std::string>& pids) {
  ProcessCounters sum;
  for (const auto& pid : pids) {
    count_process(pid, &sum);
  }
  return sum;
}

void sync_paths(const std::vector<std::string>& paths) {
  for (const auto& path : paths) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || syncfs(fd) != 0) {
      std::cerr << "rados_load: cannot sync " << path << ": " << std::strerror(errno) << "\n";
      std::exit(2);
    }
    close(fd);
  }
}

// The first bytes of every object: which one it is, and which write of it.
struct Stamp {
  std::uint64_t index;
  std::uint64_t version;
};

class Load;

// One of the `depth` operations in flight, with its own buffer.
struct Slot {
  Load* load = nullptr;
  std::vector<char> data;
  std::uint64_t index = 0;
  std::uint64_t version = 0;
  Clock::time_point begun;
  rados_completion_t completion = nullptr;
  std::size_t bytes_read = 0;
  int read_result = 0;
};

class Load {
 public:
  Load(const Settings& settings, rados_ioctx_t io) : m_settings(settings), m_io(io), m_random(settings.seed) {
    m_slots.resize(settings.depth);
    for (auto& slot : m_slots) {
      slot.load = this;
      slot.data.resize(settings.size_bytes);
      std::independent_bits_engine<std::mt19937_64, 8, std::uint16_t> noise(m_random());
      std::generate(slot.data.begin(), slot.data.end(), [&] { return static_cast<char>(noise()); });
    }
  }

  bool run(const std::string& phase);
  // What a later run has to know of the objects.
  void write_state(const std::string& path) const {
    std::ofstream out(path, std::ios::trunc);
    out << m_settings.prefix << " " << m_settings.size_bytes << "\n";
    std::copy(m_versions.begin(), m_versions.end(), std::ostream_iterator<std::uint64_t>(out, "\n"));
    if (!out.flush()) {
      std::cerr << "rados_load: cannot write " << path << "\n";
      std::exit(2);
    }
  }
  void read_state(const std::string& path) {
    std::ifstream in(path);
    std::string prefix;
    std::size_t size_bytes = 0;
    if (!(in >> prefix >> size_bytes) || prefix != m_settings.prefix || size_bytes != m_settings.size_bytes) {
      std::cerr << "rados_load: " << path << " is not what a run with this --prefix and --size has left\n";
      std::exit(2);
    }
    m_versions.assign(std::istream_iterator<std::uint64_t>(in), {});
  }

 private:
  void begin(const std::string& phase, Slot& slot);
  bool choose(const std::string& phase, Slot& slot);
  static void completed(rados_completion_t, void* slot);
  void record(Slot& slot, int result);
  bool holds_what_was_written(const Slot& slot) const;
  void report(const std::string& phase, double elapsed, const DeviceCounters& device, const ProcessCounters& process,
              std::uint64_t switches) const;
  std::string name(std::uint64_t index) const { return m_settings.prefix + "_" + std::to_string(index); }

  const Settings& m_settings;
  rados_ioctx_t m_io;
  std::mt19937_64 m_random;
  std::vector<Slot> m_slots;
  std::vector<std::uint64_t> m_versions;  // by object; 0 while a write of it is under way
  std::vector<std::uint64_t> m_order;  // of cold reads

  // One phase's state. m_mutex guards what follows it.
  std::string m_phase;
  Clock::time_point m_start;
  Clock::time_point m_end;
  std::uint64_t m_next = 0;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<Slot*> m_idle;
  std::vector<float> m_latencies_ms;
  std::vector<std::uint64_t> m_done_per_second;
  Clock::time_point m_last_done;
  std::uint64_t m_failed = 0;
  std::uint64_t m_wrong = 0;
  std::string m_first_failure;
};

// Picks the next object; false when the phase has none left. A write never meets another write of the same object
// in flight, so that what a later read must find is certain. The caller holds m_mutex.
bool Load::choose(const std::string& phase, Slot& slot) {
  if (phase == "write") {
    if ((m_next + 1) * m_settings.size_bytes > m_settings.fill_bytes_max) {
      return false;
    }
    slot.index = m_next++;
    m_versions.push_back(0);
    slot.version = 1;
  } else if (phase == "overwrite") {
    do {
      slot.index = m_random() % m_versions.size();
    } while (m_versions[slot.index] == 0);
    slot.version = m_versions[slot.index] + 1;
    m_versions[slot.index] = 0;
  } else if (phase == "delete" || phase == "cold") {
    if (m_next == m_versions.size()) {
      return false;
    }
    slot.index = phase == "cold" ? m_order[m_next] : m_next;
    slot.version = m_versions[slot.index];
    ++m_next;
  } else {
    slot.index = phase == "seq" ? m_next++ % m_versions.size() : m_random() % m_versions.size();
    slot.version = m_versions[slot.index];
  }
  return true;
}

void Load::begin(const std::string& phase, Slot& slot) {
  rados_aio_create_completion2(&slot, &Load::completed, &slot.completion);
  slot.begun = Clock::now();
  const std::string oid = name(slot.index);
  const std::size_t size = m_settings.size_bytes;
  int result = 0;
  if (phase == "write" || phase == "overwrite") {
    const Stamp stamp{slot.index, slot.version};
    std::memcpy(slot.data.data(), &stamp, sizeof(stamp));
    const auto op = rados_create_write_op();
    if (phase == "write") {
      // The hints that `rados bench` gives.
      rados_write_op_set_alloc_hint2(op, size, size,
                                     LIBRADOS_ALLOC_HINT_FLAG_SEQUENTIAL_WRITE |
                                         LIBRADOS_ALLOC_HINT_FLAG_SEQUENTIAL_READ |
                                         LIBRADOS_ALLOC_HINT_FLAG_APPEND_ONLY | LIBRADOS_ALLOC_HINT_FLAG_IMMUTABLE);
    }
    rados_write_op_write(op, slot.data.data(), size, 0);
    result = rados_aio_write_op_operate(op, m_io, slot.completion, oid.c_str(), nullptr, 0);
    rados_release_write_op(op);
  } else if (phase == "delete") {
    result = rados_aio_remove(m_io, oid.c_str(), slot.completion);
  } else {
    const auto op = rados_create_read_op();
    rados_read_op_read(op, 0, size, slot.data.data(), &slot.bytes_read, &slot.read_result);
    result = rados_aio_read_op_operate(op, m_io, slot.completion, oid.c_str(), 0);
    rados_release_read_op(op);
  }
  if (result < 0) {
    rados_aio_release(slot.completion);
    record(slot, result);
  }
}

void Load::completed(rados_completion_t completion, void* argument) {
  auto& slot = *static_cast<Slot*>(argument);
  const int result = rados_aio_get_return_value(completion);
  rados_aio_release(completion);
  slot.load->record(slot, result);
}

bool Load::holds_what_was_written(const Slot& slot) const {
  Stamp stamp;
  std::memcpy(&stamp, slot.data.data(), sizeof(stamp));
  return slot.bytes_read == m_settings.size_bytes && stamp.index == slot.index && stamp.version == slot.version;
}

void Load::record(Slot& slot, int result) {
  const auto now = Clock::now();
  const bool is_read = m_phase == "seq" || m_phase == "rand" || m_phase == "cold";
  std::lock_guard lock(m_mutex);
  if (is_read && result >= 0) {
    result = slot.read_result;
  }
  if (result < 0) {
    if (m_failed++ == 0) {
      m_first_failure = name(slot.index) + ": " + std::strerror(-result);
    }
  } else if (is_read && !holds_what_was_written(slot)) {
    ++m_wrong;
  } else {
    m_latencies_ms.push_back(std::chrono::duration<float, std::milli>(now - slot.begun).count());
    const std::size_t second = std::chrono::duration_cast<std::chrono::seconds>(now - m_start).count();
    m_done_per_second.resize(std::max(m_done_per_second.size(), second + 1));
    ++m_done_per_second[second];
    m_last_done = now;
  }
  if (m_phase == "write" || m_phase == "overwrite") {
    m_versions[slot.index] = slot.version;
  }
  m_idle.push_back(&slot);
  // Under the lock: after the last one the waiter may go on to the next phase.
  m_changed.notify_one();
}

bool Load::run(const std::string& phase) {
  if (phase == "write") {
    m_versions.clear();
  } else if (m_versions.empty()) {
    std::cerr << "rados_load: " << phase << " needs a write phase before it\n";
    return false;
  } else if (phase == "overwrite" && m_versions.size() < m_settings.depth) {
    std::cerr << "rados_load: overwrite needs at least as many objects as operations in flight\n";
    return false;
  }
  sync_paths(m_settings.sync_paths);
  if (phase == "cold") {
    m_order.resize(m_versions.size());
    std::iota(m_order.begin(), m_order.end(), 0);
    std::shuffle(m_order.begin(), m_order.end(), m_random);
  }
  const auto device_before = count_devices(m_settings.devices);
  const auto process_before = count_processes(m_settings.processes);
  std::unique_lock lock(m_mutex);
  m_phase = phase;
  m_next = 0;
  m_latencies_ms.clear();
  m_done_per_second.clear();
  m_failed = m_wrong = 0;
  m_idle.clear();
  for (auto& slot : m_slots) {
    m_idle.push_back(&slot);
  }
  m_start = m_last_done = Clock::now();
  const bool fills = phase == "write" && m_settings.fill_seconds > 0;
  const std::chrono::duration<double> length(fills ? m_settings.fill_seconds : m_settings.seconds);
  m_end = m_start + std::chrono::duration_cast<Clock::duration>(length);
  bool more = true;
  while (more && m_failed == 0) {
    m_changed.wait(lock, [this] { return !m_idle.empty(); });
    if (phase != "delete" && Clock::now() >= m_end) {
      break;
    }
    Slot* slot = m_idle.back();
    more = choose(phase, *slot);
    if (more) {
      m_idle.pop_back();
      lock.unlock();
      begin(phase, *slot);
      lock.lock();
    }
  }
  m_changed.wait(lock, [this] { return m_idle.size() == m_slots.size(); });
  const double elapsed = std::chrono::duration<double>(m_last_done - m_start).count();
  // Flushes are counted before the sync below, which makes some; bytes after it, since what still lies in the page
  // cache was written by this phase too.
  auto device = count_devices(m_settings.devices);
  device.flushes -= device_before.flushes;
  device.read_bytes -= device_before.read_bytes;
  auto process = count_processes(m_settings.processes);
  process.processor_us -= process_before.processor_us;
  const std::uint64_t switches = switches_since(process_before, process);
  process.page_faults -= process_before.page_faults;
  sync_paths(m_settings.sync_paths);
  device.written_bytes = count_devices(m_settings.devices).written_bytes - device_before.written_bytes;
  report(phase, elapsed, device, process, switches);
  return m_failed == 0 && m_wrong == 0;
}

void Load::report(const std::string& phase, double elapsed, const DeviceCounters& device,
                  const ProcessCounters& process, std::uint64_t switches) const {
  auto sorted = m_latencies_ms;
  std::sort(sorted.begin(), sorted.end());
  const auto percentile = [&](double fraction) {
    return sorted.empty() ? 0.0 : sorted[std::min(sorted.size() - 1, std::size_t(fraction * sorted.size()))];
  };
  std::ostringstream per_second;
  const std::size_t whole_seconds = std::min(m_done_per_second.size(), std::size_t(elapsed + 0.05));
  for (std::size_t second = 0; second < whole_seconds; ++second) {
    per_second << (second ? "," : "") << m_done_per_second[second];
  }
  std::cout << "{\"phase\":\"" << phase << "\",\"size_bytes\":" << m_settings.size_bytes << ",\"ops\":" << sorted.size()
            << ",\"seconds\":" << elapsed << ",\"objects\":" << m_versions.size() << ",\"p50_ms\":" << percentile(0.50)
            << ",\"p99_ms\":" << percentile(0.99) << ",\"max_ms\":" << (sorted.empty() ? 0.0 : sorted.back())
            << ",\"ops_per_second\":[" << per_second.str() << "],\"device_bytes_written\":" << device.written_bytes
            << ",\"device_bytes_read\":" << device.read_bytes << ",\"device_flushes\":" << device.flushes
            << ",\"processor_us\":" << process.processor_us << ",\"switches\":" << switches
            << ",\"page_faults\":" << process.page_faults << ",\"failed\":" << m_failed << ",\"wrong\":" << m_wrong
            << "}" << std::endl;
  if (m_failed > 0) {
    std::cerr << "rados_load: " << phase << ": " << m_failed << " operations failed, the first: " << m_first_failure
              << "\n";
  }
  if (m_wrong > 0) {
    std::cerr << "rados_load: " << phase << ": " << m_wrong << " reads returned wrong data\n";
  }
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    words.push_back(word);
  }
  return words;
}

template <typename Number>
Number parse_number(const char* option, const char* text, Number least, Number most) {
  Number value{};
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc{} || *end != '\0' || value < least || value > most) {
    std::cerr << "rados_load: " << option << " " << text << ": give a number from " << least << " to " << most << "\n";
    std::exit(2);
  }
  return value;
}

// 4096, or 4K; also M, G.
std::uint64_t parse_size(const char* option, const char* text, std::uint64_t least, std::uint64_t most) {
  static constexpr std::string_view units = "KMG";
  std::uint64_t value = 0;
  unsigned shift = 0;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error == std::errc{} && *end != '\0' && units.find(*end) != std::string_view::npos) {
    shift = 10 * (static_cast<unsigned>(units.find(*end)) + 1);
    ++end;
  }
  if (error != std::errc{} || *end != '\0' || value > most >> shift || value << shift < least) {
    std::cerr << "rados_load: " << option << " " << text << ": give a size from " << least << " to " << most
              << ", like 4096 or 4K\n";
    std::exit(2);
  }
  return value << shift;
}

Settings parse_args(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--conf") {
      settings.conf = value;
    } else if (option == "--pool") {
      settings.pool = value;
    } else if (option == "--prefix") {
      settings.prefix = value;
    } else if (option == "--phases") {
      settings.phases = split(value);
    } else if (option == "--devices") {
      settings.devices = split(value);
    } else if (option == "--processes") {
      settings.processes = split(value);
    } else if (option == "--sync") {
      settings.sync_paths = split(value);
    } else if (option == "--state") {
      settings.state = value;
    } else if (option == "--size") {
      settings.size_bytes = parse_size(argv[i], value, sizeof(Stamp), std::uint64_t{64} << 20);
    } else if (option == "--depth") {
      settings.depth = parse_number<std::size_t>(argv[i], value, 1, 1024);
    } else if (option == "--seconds") {
      settings.seconds = parse_number<double>(argv[i], value, 0.1, 86400);
    } else if (option == "--fill-seconds") {
      settings.fill_seconds = parse_number<double>(argv[i], value, 0.1, 86400);
    } else if (option == "--fill-bytes-max") {
      settings.fill_bytes_max = parse_size(argv[i], value, 1 << 20, std::uint64_t{1} << 44);
    } else if (option == "--seed") {
      settings.seed = parse_number<std::uint64_t>(argv[i], value, 0, ~std::uint64_t{0});
    } else {
      std::cerr << "usage: rados_load --conf FILE --pool POOL --phases write,overwrite,seq,rand,cold,delete\n"
                   "  [--size SIZE] [--depth N] [--seconds S] [--fill-seconds S] [--fill-bytes-max SIZE]\n"
                   "  [--prefix NAME] [--seed N] [--devices /dev/loop0,...] [--processes PID,...] [--sync PATH,...]\n"
                   "  [--state FILE]\n"
                   "With --state, phases without write go on with what an earlier run left.\n";
      std::exit(2);
    }
  }
  for (const auto& phase : settings.phases) {
    static const std::vector<std::string> known = {"write", "overwrite", "seq", "rand", "cold", "delete"};
    if (std::find(known.begin(), known.end(), phase) == known.end()) {
      std::cerr << "rados_load: --phases: " << phase << " is none of write, overwrite, seq, rand, cold, delete\n";
      std::exit(2);
    }
  }
  return settings;
}

void require(int result, const std::string& what) {
  if (result < 0) {
    std::cerr << "rados_load: " << what << ": " << std::strerror(-result) << "\n";
    std::exit(2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse_args(argc, argv);
  rados_t cluster;
  rados_ioctx_t io;
  require(rados_create(&cluster, "admin"), "librados");
  require(rados_conf_read_file(cluster, settings.conf.c_str()), settings.conf);
  require(rados_connect(cluster), "connect with " + settings.conf);
  require(rados_ioctx_create(cluster, settings.pool.c_str(), &io), "pool " + settings.pool);
  bool good = true;
  {
    const auto load = std::make_unique<Load>(settings, io);
    if (!settings.state.empty() && !settings.phases.empty() && settings.phases.front() != "write") {
      load->read_state(settings.state);
    }
    for (const auto& phase : settings.phases) {
      good = good && load->run(phase);
    }
    if (!settings.state.empty()) {
      load->write_state(settings.state);
    }
  }
  rados_ioctx_destroy(io);
  rados_shutdown(cluster);
  return good ? 0 : 1;
}
