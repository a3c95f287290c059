#include "scenarios/cli/traces.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <system_error>

#include <fmt/core.h>

#include "scenarios/program/rank_sets.h"
#include "scenarios/program/units.h"
#include "viz/base/gzip_stream.h"
#include "viz/base/write_file.h"
#include "viz/json/json_report.h"
#include "viz/text/text_report.h"
#include "viz/text/timeline_chart.h"
#include "viz/traces/chrome_trace.h"
#include "viz/traces/kineto_trace.h"
#include "viz/traces/perfetto_trace.h"

namespace rollcall::cli {

namespace {

namespace fs = std::filesystem;

// A browser has about 2 GB for a trace and needs several times its size.
constexpr std::size_t many_spans = 1'000'000;

Time parse_time(std::string_view text) {
  const scenario::Quantity parsed = scenario::parse_duration(text);
  if (!parsed.value) {
    throw UsageError(fmt::format("--trace-window: {}", parsed.problem));
  }
  return *parsed.value;
}

void read_window(const std::string& text, viz::TraceOptions& options) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw UsageError("--trace-window: expected two times, such as 10ms:20ms");
  }
  options.from = parse_time(std::string_view(text).substr(0, colon));
  options.until = parse_time(std::string_view(text).substr(colon + 1));
  if (options.from > options.until) {
    throw UsageError("--trace-window: the first time is later than the second");
  }
}

using Writer = void (*)(const Report& report, std::ostream& out, const viz::TraceOptions& options);

Writer writer_for(const std::string& file) {
  const bool is_protobuf = file.ends_with(".pftrace") || file.ends_with(".pftrace.gz");
  return is_protobuf ? viz::perfetto_trace : viz::chrome_trace;
}

// The ending names the format. Files that are not regular, such as pipes, need none.
void require_known_ending(const std::string& file) {
  constexpr std::array<std::string_view, 4> endings = {".json", ".json.gz", ".pftrace", ".pftrace.gz"};
  std::error_code missing;
  const bool is_special = fs::exists(file, missing) && !fs::is_regular_file(file, missing);
  if (!is_special &&
      std::ranges::none_of(endings, [&](std::string_view each) { return file.ends_with(each); })) {
    throw UsageError(fmt::format(
        "--trace: '{}' names no format; end it with .json (Chrome trace), .json.gz or .pftrace", file));
  }
}

void write_one(const std::string& file, const Report& report, const viz::TraceOptions& options) {
  viz::write_file(file, [&](std::ostream& out) {
    if (!file.ends_with(".gz")) {
      writer_for(file)(report, out, options);
      return;
    }
    viz::GzipStream compressed(out);
    writer_for(file)(report, compressed, options);
    compressed.finish();
  });
}

void write_directory(const std::string& directory, const Report& report, const viz::TraceOptions& options) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    throw viz::OutputError(fmt::format("cannot create the directory '{}': {}", directory, error.message()));
  }
  const viz::KinetoTraces traces(report, options);
  for (const Rank rank : traces.ranks()) {
    const fs::path path = fs::path(directory) / viz::KinetoTraces::file_name(rank);
    viz::write_file(path.string(), [&](std::ostream& out) { traces.write(rank, out); });
  }
}

}  // namespace

bool wants_timeline(const TraceArguments& arguments) {
  return !arguments.files.empty() || !arguments.directory.empty() || arguments.chart;
}

std::string output_of(const CommandLine& line, const Report& report, const viz::TraceOptions& options) {
  if (line.format == Format::json) {
    return viz::json_report(report);
  }
  const bool color = wants_color(line);
  std::string text = viz::text_report(report, text_style(line));
  if (line.trace.chart) {
    text += "\n" + viz::timeline_chart(report, options, {.ascii = line.trace.ascii, .color = color});
  }
  return text;
}

viz::TraceOptions trace_options(const TraceArguments& arguments, Rank world_size) {
  std::ranges::for_each(arguments.files, require_known_ending);
  if (!wants_timeline(arguments) && (!arguments.ranks.empty() || !arguments.window.empty())) {
    throw UsageError("--trace-ranks and --trace-window need --trace, --trace-dir or --timeline");
  }
  viz::TraceOptions options;
  options.whole_microseconds = arguments.time == "us";
  if (!arguments.ranks.empty()) {
    scenario::Parsed<RankSet> parsed = scenario::parse_ranks(arguments.ranks, world_size);
    if (!parsed.value) {
      throw UsageError(fmt::format("--trace-ranks: {}", parsed.problem));
    }
    options.ranks = std::move(parsed.value);
  }
  if (!arguments.window.empty()) {
    read_window(arguments.window, options);
  }
  return options;
}

viz::TraceOptions checked_trace_options(const TraceArguments& arguments, Rank world_size) {
  viz::TraceOptions options = trace_options(arguments, world_size);
  std::error_code missing;  // then there are no old files
  for (fs::directory_iterator it(arguments.directory, missing), end; !missing && it != end;
       it.increment(missing)) {
    const std::string name = it->path().filename().string();
    const bool is_ours = name.starts_with("rank") && name.ends_with(".json");
    const auto rank = is_ours ? name.substr(4, name.size() - 9) : std::string();
    const bool is_number = !rank.empty() && rank.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && (rank.size() > 7 || std::stoi(rank) >= world_size)) {
      throw UsageError(
          fmt::format("'{}' holds {} of another run; empty it first, or readers will mix the two",
                      arguments.directory, name));
    }
  }
  return options;
}

void write_traces(const CommandLine& line, const Report& report, const viz::TraceOptions& options) {
  const TraceArguments& arguments = line.trace;
  const bool is_quiet = line.detail == viz::TextStyle::Detail::quiet;
  const std::size_t spans = report.timeline.spans().size();
  for (const std::string& file : arguments.files) {
    write_one(file, report, options);
    if (!is_quiet) {
      remark(fmt::format("rollcall: wrote {} spans to {}; open it at https://ui.perfetto.dev", spans, file));
    }
  }
  if (!arguments.files.empty() && spans > many_spans && !options.ranks && arguments.window.empty()) {
    remark("rollcall: that is a lot for a browser; narrow it down with --trace-ranks or --trace-window");
  }
  if (!arguments.directory.empty()) {
    write_directory(arguments.directory, report, options);
    if (!is_quiet) {
      remark(fmt::format("rollcall: wrote one file per rank to {}, as torch.profiler does",
                         arguments.directory));
    }
  }
}

}  // namespace rollcall::cli
