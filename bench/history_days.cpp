// Measures the cost of a machine's history after many days: virtual time passes as fast as samples
// can be made. Prints memory, disk, and the time of samples and of queries.
//
//   history_days [DAYS [GPUS [LEASES]]]     90 days, 8 GPUs, 8 leases at a time
//   history_days DAYS LEASES FILE UUID…     measures nothing: makes FILE, the history of GPUs with
//                                           these UUIDs up to now (web_page.sh)
//
// Except for the last hour, rows are stored every five minutes of virtual time instead of every 10
// s: the file has the same rows in the end.
#include "series/range.h"
#include "store/sqlite_series.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>

#include <unistd.h>

namespace {

using namespace gpurota;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::int64_t kStart = 1'800'000'000;

struct Machine {
  int gpus = 8, leases = 8;
  std::mt19937_64 random{1};
  std::vector<std::string> names{};  // of the GPUs; names are made up if empty

  std::string name(int i) const {
    return names.empty() ? "GPU-" + std::to_string(i) : names[static_cast<std::size_t>(i)];
  }

  std::vector<series::Entry> sample(std::int64_t second) {
    std::vector<series::Entry> entries;
    for (int i = 0; i < gpus; ++i) {
      series::Entry entry;
      entry.subject = series::subject_of(GpuUuid{name(i)});
      const std::uint64_t load = random() % 1001;
      const std::uint64_t figures[] = {load,
                                       load,
                                       60000 + load,
                                       60000 + load,
                                       1000 + load * 6,
                                       1000 + load * 6,
                                       350 + load / 3,
                                       350 + load / 3,
                                       1755,
                                       load > 900 ? 1U : 0U,
                                       0,
                                       0,
                                       static_cast<std::uint64_t>(second / 36000)};
      std::copy(std::begin(figures), std::end(figures), entry.values.begin());
      entries.push_back(entry);
    }
    for (int i = 0; i < leases; ++i) {
      series::Entry entry;
      entry.subject =
          series::subject_of(LeaseId{static_cast<std::uint64_t>(second / 36000 * leases + i)});
      const std::uint64_t load = random() % 1001;
      const std::uint64_t figures[] = {40000, 40000, load, load, 0, load};
      std::copy(std::begin(figures), std::end(figures), entry.values.begin());
      entries.push_back(entry);
    }
    return entries;
  }
};

double cpu_ms() { return static_cast<double>(std::clock()) * 1000 / CLOCKS_PER_SEC; }

double milliseconds(steady_clock::time_point since) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - since).count();
}

void ask(const series::Rings& rings, const Machine& machine, std::int64_t end, std::int64_t span,
         const char* what) {
  std::set<series::Subject> wanted;
  for (int i = 0; i < machine.gpus; ++i)
    wanted.insert(series::subject_of(GpuUuid{"GPU-" + std::to_string(i)}));
  const WallTime now(seconds{end});
  const series::Plan plan = series::plan(now - seconds(span), now, now, 600);
  const auto begun = steady_clock::now();
  double longest = 0;
  series::RangeReader reader(rings, plan, wanted);
  for (bool more = true; more;) {
    const auto piece = steady_clock::now();
    more = reader.go_on(200);
    longest = std::max(longest, milliseconds(piece));
  }
  fmt::print("{:>11}: {} points of {} s of each GPU in {:.2f} ms, the longest piece {:.2f} ms\n",
             what, reader.points(*wanted.begin()).size(), plan.step().count(), milliseconds(begun),
             longest);
}

// Fills the file as if a sample had been taken every second. In fact there is a sample every second
// only in the last day, and every minute before that.
int make_file(std::int64_t days, Machine machine, const std::string& file) {
  store::SqliteSeries store(file);
  if (const auto loaded = store.load(); !loaded)
    return fmt::print("{}\n", loaded.error().message), 1;
  series::Rings rings;
  const std::int64_t end = std::time(nullptr), first = (end - days * 86400) / 300 * 300;
  for (std::int64_t second = first; second<end; second += end - second> 86400 ? 60 : 1) {
    rings.add(WallTime(seconds(second)), machine.sample(second));
    if (second % 300 != 0) continue;
    if (const auto saved = store.save(rings.take_changed()); !saved)
      return fmt::print("{}\n", saved.error().message), 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Machine machine;
  if (argc > 4) {
    machine.names.assign(argv + 4, argv + argc);
    machine.gpus = argc - 4;
    machine.leases = std::atoi(argv[2]);
    return make_file(std::atoi(argv[1]), machine, argv[3]);
  }
  const std::int64_t days = argc > 1 ? std::atoi(argv[1]) : 90;
  if (argc > 2) machine.gpus = std::atoi(argv[2]);
  if (argc > 3) machine.leases = std::atoi(argv[3]);
  const std::string folder = "/tmp/gpurota-history-days." + std::to_string(::getpid());
  std::filesystem::create_directory(folder);
  store::SqliteSeries store(folder + "/history.db");
  if (const auto loaded = store.load(); !loaded)
    return fmt::print("{}\n", loaded.error().message), 1;
  series::Rings rings;
  const std::int64_t end = kStart + days * 86400;
  double sampling = 0, storing = 0;
  std::int64_t samples = 0, saves = 0;
  for (std::int64_t second = kStart; second < end; ++second) {
    auto entries = machine.sample(second);
    const double before = cpu_ms();
    rings.add(WallTime(seconds(second)), std::move(entries));
    sampling += cpu_ms() - before;
    ++samples;
    if (second % (end - second < 3600 ? 10 : 300) != 0) continue;
    const double stored = cpu_ms();
    if (const auto saved = store.save(rings.take_changed()); !saved)
      return fmt::print("{}\n", saved.error().message), 1;
    if (end - second < 3600) storing += cpu_ms() - stored, ++saves;
  }
  fmt::print("{} days, {} GPUs, {} leases at a time\n", days, machine.gpus, machine.leases);
  fmt::print(
      "     memory: {:.1f} MB of rows (bound {:.1f} MB)\n",
      static_cast<double>(rings.bytes()) / 1e6,
      static_cast<double>(series::most_bytes_of_rows(static_cast<std::size_t>(machine.gpus))) /
          1e6);
  const auto size = [&](const char* suffix) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(folder + "/history.db" + suffix, error);
    return error ? 0.0 : static_cast<double>(bytes) / 1e6;
  };
  fmt::print("       disk: {:.1f} MB, and a log of {:.1f} MB\n", size(""), size("-wal"));
  fmt::print("   a sample: {:.1f} us of processor time; storing 10 s: {:.2f} ms\n",
             sampling * 1000 / static_cast<double>(samples),
             storing / static_cast<double>(std::max<std::int64_t>(saves, 1)));
  ask(rings, machine, end, 900, "15 minutes");
  ask(rings, machine, end, 86400, "a day");
  ask(rings, machine, end, 7 * 86400, "a week");
  ask(rings, machine, end, 90 * 86400, "90 days");
  std::filesystem::remove_all(folder);
  return 0;
}
