// `rollcall minimize`: finds the smallest scenario that fails in the same way.

#include <fmt/core.h>

#include "scenarios/cli/cli.h"
#include "scenarios/cli/subject.h"
#include "scenarios/cli/terminal/interruption.h"
#include "scenarios/cli/terminal/progress.h"
#include "scenarios/variants/minimize.h"

namespace rollcall::cli {

ExitCode minimize_scenario(const CommandLine& line) {
  require_scenario(line.file);
  const Interruption interruption;
  scenario::MinimizeOptions options{.seed = line.seed, .progress = {}, .interrupted = &interruption.flag()};
  Progress progress(line.progress_wish(), fmt::format("minimizing {}", line.file));
  options.progress = [&](std::int64_t tried, Rank ranks, std::size_t statements) {
    progress.say(fmt::format("minimizing {}: ranks left: {}, statements left: {}, tries: {}", line.file,
                             ranks, statements, tried));
  };
  const scenario::Minimized result = scenario::minimize(line.file, options);
  progress.clear();
  emit(line, result.text);
  if (line.detail != viz::TextStyle::Detail::quiet) {
    remark(fmt::format(
        "rollcall: {} of {} ranks and {} of {} statements are left after {} tries; preserved: {}{}",
        result.after.ranks, result.before.ranks, result.after.statements, result.before.statements,
        result.tried, to_string(result.signature),
        result.interrupted ? "; interrupted, so the result may not be minimal" : ""));
  }
  return result.interrupted ? ExitCode::interrupted : ExitCode::as_expected;
}

}  // namespace rollcall::cli
