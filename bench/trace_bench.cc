// What writing a trace costs: CPU time and memory for a million slices, in each format. Nothing here
// passes or fails; see bench/README.md.

#include <ctime>
#include <fstream>
#include <ostream>
#include <streambuf>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "viz/base/gzip_stream.h"
#include "viz/traces/chrome_trace.h"
#include "viz/traces/perfetto_trace.h"

namespace rollcall::bench {

namespace {

// Counts what is written and keeps none of it.
class CountingBuffer final : public std::streambuf {
 public:
  std::size_t bytes = 0;

 protected:
  int_type overflow(int_type character) override {
    ++bytes;
    return traits_type::not_eof(character);
  }
  std::streamsize xsputn(const char*, std::streamsize count) override {
    bytes += static_cast<std::size_t>(count);
    return count;
  }
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double resident_mebibytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) / (1 << 20);
}

// `slices` calls of 64 ranks that come one after another, each with an arrow to everybody.
Report training(std::int64_t slices) {
  constexpr Rank ranks = 64;
  Report report;
  report.world_size = ranks;
  report.backend = "nccl";
  report.groups = {{"world", RankSet::range(0, ranks - 1)}};
  Span span;
  span.numel = 1'000'000;
  span.name = report.timeline.intern("all_reduce");
  span.group = report.timeline.intern("world");
  span.label = report.timeline.intern("DDP.backward");
  span.site = report.timeline.intern("train.json:14:7");
  for (std::int64_t i = 0; i < slices; ++i) {
    span.rank = static_cast<Rank>(i % ranks);
    span.seq = i / ranks;
    span.start = span.seq * 100'000 + span.rank * 10;
    span.end = span.seq * 100'000 + 90'000;
    report.timeline.add(span);
    report.simulated_time = span.end;
  }
  return report;
}

template <typename Write>
void measure(const char* name, const Report& report, const Write& write) {
  CountingBuffer buffer;
  std::ostream out(&buffer);
  const double memory = resident_mebibytes();
  const double start = cpu_seconds();
  write(report, out);
  const double seconds = cpu_seconds() - start;
  fmt::print("{:<10} {:>10} {:>10.2f} {:>10.1f} {:>12.1f}\n", name, report.timeline.spans().size(), seconds,
             static_cast<double>(buffer.bytes) / 1e6, resident_mebibytes() - memory);
}

}  // namespace

void run() {
  fmt::print("{:<10} {:>10} {:>10} {:>10} {:>12}\n", "format", "slices", "CPU s", "MB", "MiB resident");
  for (const std::int64_t slices : {250'000, 1'000'000}) {
    const Report report = training(slices);
    measure("json", report, [](const Report& it, std::ostream& out) { viz::chrome_trace(it, out); });
    measure("json.gz", report, [](const Report& it, std::ostream& out) {
      viz::GzipStream compressed(out);
      viz::chrome_trace(it, compressed);
      compressed.finish();
    });
    measure("pftrace", report, [](const Report& it, std::ostream& out) { viz::perfetto_trace(it, out); });
  }
}

}  // namespace rollcall::bench

int main() { rollcall::bench::run(); }
