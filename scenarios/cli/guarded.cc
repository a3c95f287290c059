#include "scenarios/cli/cli.h"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <variant>

#include <fmt/core.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "real/rank/backend_entry.h"
#include "real/rank/sockets.h"
#include "scenarios/json/diagnostic.h"
#include "scenarios/record/script_run.h"
#include "scenarios/variants/minimize.h"
#include "viz/base/write_file.h"

namespace rollcall::cli {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const scenario::Diagnostic& diagnostic) {
  Json object = {{"file", diagnostic.file}};
  if (diagnostic.line > 0) {  // otherwise it is about the file as a whole
    object["line"] = diagnostic.line;
    object["column"] = diagnostic.column;
  }
  object["pointer"] = diagnostic.pointer;
  object["message"] = diagnostic.message;
  if (!diagnostic.suggestion.empty()) {
    object["suggestion"] = diagnostic.suggestion;
  }
  return object;
}

// Shows what is wrong with a scenario file: as text on standard error; with --format json as an object on standard
// output, in place of the report:
//   { "schema_version": 1, "errors": [ { "file", "line", "column", "pointer", "message", "suggestion" } ] }
void show_diagnostics(const CommandLine& line, const scenario::InvalidScenario& error) {
  if (line.format == Format::text) {
    remark(error.what());
    return;
  }
  Json errors = Json::array();
  for (const scenario::Diagnostic& diagnostic : error.diagnostics()) {
    errors.push_back(json_of(diagnostic));
  }
  const Json object = {{"schema_version", 1}, {"errors", std::move(errors)}};
  emit(line, object.dump(2, ' ', true, Json::error_handler_t::replace) + "\n");
}

ExitCode run(int argc, const char* const* argv) {
  const auto parsed = parse(argc, argv);
  if (const auto* code = std::get_if<ExitCode>(&parsed)) {
    return *code;
  }
  const auto& line = std::get<CommandLine>(parsed);
  try {
    return line.execute(line);
  } catch (const scenario::InvalidScenario& error) {
    show_diagnostics(line, error);
    return ExitCode::invalid;
  }
}

std::atomic<bool> has_run_out = false;  // whether memory has run out so far

void note_that_memory_ended() {
  has_run_out = true;
  throw std::bad_alloc();
}

ExitCode fail(ExitCode code, std::string_view what, std::string_view message, std::string_view advice = "") {
  try {
    remark(fmt::format("rollcall: {}: {}{}", what, message, advice));
  } catch (...) {  // no memory to format the message
    remark({"rollcall: ", what, ": ", message, advice});
  }
  return code;
}

ExitCode explain_no_memory() noexcept {
  return fail(ExitCode::internal_error, "error",
              "out of memory; try smaller inputs, fewer ranks or fewer parallel jobs (-j)");
}

// Reports the exception that is being handled, and returns its exit code.
ExitCode explain_exception() noexcept {
  try {
    throw;
  } catch (const UsageError& error) {
    return fail(ExitCode::invalid, "error", error.what());
  } catch (const viz::OutputError& error) {
    return fail(ExitCode::invalid, "error", error.what());
  } catch (const scenario::NothingToMinimize& error) {
    return fail(ExitCode::invalid, "error", error.what());
  } catch (
      const std::invalid_argument& error) {  // options that contradict each other or do not fit the scenario
    return fail(ExitCode::invalid, "error", error.what());
  } catch (const real::Unavailable& error) {
    remark({"rollcall: not possible here: ", error.what()});
    return ExitCode::unavailable;
  } catch (const scenario::NoTorch& error) {
    return fail(ExitCode::unavailable, "not possible here", error.what());
  } catch (const real::Disconnected& error) {
    return fail(ExitCode::invalid, "error", error.what());
  } catch (const std::bad_alloc&) {
    return explain_no_memory();
  } catch (const std::system_error& error) {  // no thread, no process, no pipe: not our fault
    return fail(ExitCode::internal_error, "error: the operating system refused a resource", error.what(),
                "; `ulimit -a` shows the limits");
  } catch (const std::exception& error) {
    return fail(ExitCode::internal_error, "internal error", error.what());
  } catch (...) {
    return fail(ExitCode::internal_error, "internal error", "an exception of unknown type");
  }
}

// Handles an exception where none may be thrown: destructors of nlohmann::json and iterators over folders
// need memory.
[[noreturn]] void on_terminate() {
  viz::remove_unfinished_file();
  if (has_run_out) {
    ::_exit(static_cast<int>(explain_no_memory()));
  }
  remark({"rollcall: internal error: an exception escaped, as when a thread has no memory to throw one"});
  std::abort();
}

}  // namespace

ExitCode guarded(int argc, const char* const* argv) noexcept {
  std::set_new_handler(note_that_memory_ended);
  std::set_terminate(on_terminate);
  try {
    return run(argc, argv);
  } catch (...) {
    return explain_exception();
  }
}

}  // namespace rollcall::cli
