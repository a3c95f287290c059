#include <algorithm>
#include <filesystem>
#include <ostream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "real/nccl/throughput.h"
#include "scenarios/cli/cli.h"
#include "scenarios/cli/cluster_choice.h"
#include "scenarios/cli/report_files.h"
#include "scenarios/cli/subject.h"
#include "scenarios/cli/terminal/progress.h"
#include "scenarios/cli/traces.h"
#include "scenarios/cli/watched_run.h"
#include "scenarios/format/cluster_reader.h"
#include "scenarios/format/scenario.h"
#include "scenarios/json/source.h"
#include "scenarios/json/suggest.h"
#include "scenarios/measured/bench_table.h"
#include "scenarios/measured/calibrate.h"
#include "scenarios/predict/scenario_change.h"
#include "scenarios/predict/size_table.h"
#include "scenarios/predict/step_time.h"
#include "scenarios/predict/step_words.h"
#include "scenarios/predict/variant_table.h"
#include "scenarios/run/runner.h"
#include "scenarios/variants/scenario_tree.h"
#include "sim/c10d/backend_traits.h"
#include "viz/base/write_file.h"
#include "viz/rows/rank_profile.h"

namespace rollcall::cli {

namespace {

using scenario::Scenario;

std::string hint(std::string_view word) {
  return word.empty() ? std::string() : fmt::format(" (did you mean '{}'?)", word);
}

// True for operations that run on GPUs. Calls about groups and on the store go from host to host.
bool is_predictable(OpKind kind) { return has_tensor(kind) || kind == OpKind::barrier; }

// Also suggests operations for the names that nccl-tests uses for them.
OpKind op_of(const std::string& word) {
  if (const auto kind = parse_op_kind(word); kind && is_predictable(*kind)) {
    return *kind;
  }
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < op_kind_count; ++kind) {
    if (is_predictable(static_cast<OpKind>(kind))) {
      names.emplace_back(to_string(static_cast<OpKind>(kind)));
    }
  }
  throw UsageError(fmt::format("unknown operation '{}'{}; use one of {}, or a scenario file", word,
                               hint(scenario::suggest_from(word, names)), fmt::join(names, ", ")));
}

// Returns the value that `parse` makes of a word, or throws an error that names the option.
template <typename Parse>
auto parsed_option(const char* option, const std::string& word, const char* examples, const Parse& parse) {
  const auto value = parse(word);
  if (!value) {
    throw UsageError(fmt::format("{}: unknown '{}'; write {}", option, word, examples));
  }
  return *value;
}

cost::Call call_of(const PredictArguments& arguments, const cost::Cluster& cluster) {
  cost::Call call;
  call.kind = op_of(arguments.subject);
  call.same_node = cluster.nodes == 1;  // for send and recv: the greatest distance
  call.dtype = parsed_option("--dtype", arguments.dtype, "float32, bfloat16, ...", parse_dtype);
  call.reduce = parsed_option("--reduce-op", arguments.reduce_op, "SUM, AVG, MAX, ...", parse_reduce_op);
  if (!arguments.algorithm.empty()) {
    call.algorithm = parsed_option("--algorithm", arguments.algorithm, "Ring, Tree, NVLS, NVLSTree, PAT, ...",
                                   cost::parse_algorithm);
  }
  if (!arguments.protocol.empty()) {
    call.protocol =
        parsed_option("--protocol", arguments.protocol, "LL, LL128 or Simple", cost::parse_protocol);
  }
  return call;
}

predict::SizeRange sizes_of(const std::string& text) {
  const predict::ParsedSizes parsed = predict::parse_sizes(text);
  if (!parsed.range) {
    throw UsageError(fmt::format("--bytes: {}", parsed.problem));
  }
  return *parsed.range;
}

// Returns one explanation for each size, or a single one if all are the same, as in our own model.
std::string explanations(const cost::Cluster& cluster, cost::Call call, const predict::SizeRange& sizes) {
  std::string text;
  for (call.bytes = sizes.first; call.bytes <= sizes.last; call.bytes *= 2) {
    const std::string one = predict::explain_text(cluster, call);
    if (text == one) {
      break;
    }
    text += (text.empty() ? "" : "\n") + one;
    if (call.bytes > INT64_MAX / 2) {
      break;
    }
  }
  return text;
}

// Throws real::Unavailable if there are not that many GPUs.
void measure(predict::SizeTable& table, const cost::Call& call) {
  real::ThroughputOptions options{
      .op = call.kind, .dtype = call.dtype, .reduce = call.reduce, .gpus = table.ranks, .bytes = {}};
  if (!real::is_measured(call.kind)) {
    throw UsageError(fmt::format("--measure: {} cannot be measured", to_string(call.kind)));
  }
  for (const predict::SizeRow& row : table.rows) {
    options.bytes.push_back(row.bytes);
  }
  predict::add_measured(table, real::measure_throughput(options));
}

ExitCode predict_op(const CommandLine& line) {
  const PredictArguments& arguments = line.predict;
  if (arguments.explain && line.format == Format::json) {
    throw UsageError("--explain prints text; leave out --format json");
  }
  if (arguments.cluster.empty()) {
    throw UsageError(fmt::format("predict needs --cluster: a file, or a preset such as {}",
                                 fmt::join(cost::preset_names(), ", ")));
  }
  const auto [cluster, rows] = asked_cluster(arguments, cluster_of(arguments.cluster));
  cost::Call call = call_of(arguments, cluster);
  const predict::SizeRange sizes = sizes_of(arguments.bytes);
  if (arguments.explain) {
    emit(line, explanations(cluster, call, sizes));
    return ExitCode::as_expected;
  }
  auto table = predict::predict_sizes(cluster, call, sizes);
  if (!table) {
    throw UsageError(
        fmt::format("{} on {} has no candidate with this --algorithm and --protocol; --explain says why",
                    to_string(call.kind), cluster.name));
  }
  if (arguments.measure) {
    measure(*table, call);
  }
  if (!arguments.svg.empty()) {
    viz::write_file(arguments.svg, [&table](std::ostream& out) { out << predict::svg_of(*table); });
  }
  emit(line, line.format == Format::json ? predict::json_of(*table)
                                         : (rows.empty() ? "" : measured::calibration_text(cluster, rows)) +
                                               predict::text_of(*table));
  return ExitCode::as_expected;
}

predict::StepQuestion question_of(const PredictArguments& arguments) {
  if (arguments.cluster.empty()) {
    throw UsageError("--model needs --cluster: a file, or a preset such as h100-8");
  }
  predict::StepQuestion question{.model = predict::parse_transformer(arguments.model),
                                 .layout = predict::parse_layout(arguments.layout),
                                 .cluster = cluster_of(arguments.cluster)};
  if (!arguments.gpu.empty()) {
    question.gpu = cost::find_gpu(std::string_view(arguments.gpu));
    if (question.gpu == nullptr) {
      throw UsageError(
          fmt::format("--gpu: nothing is known of '{}'; write the name of a preset such as h100, without "
                      "its numbers, or h100-500w",
                      arguments.gpu));
    }
  }
  return question;
}

ExitCode predict_model(const CommandLine& line) {
  const PredictArguments& arguments = line.predict;
  require_pages(line);
  if (wants_timeline(line.trace)) {
    throw UsageError(
        "--trace and --trace-dir need a scenario or a script: what --model predicts stands for many ranks");
  }
  const predict::StepQuestion question = question_of(arguments);
  const predict::StepPrediction prediction = predict::predict_step(question);
  std::vector<predict::StepVariant> variants{{.name = "as it is", .prediction = prediction}};
  for (const std::string& words : arguments.what_if) {
    variants.push_back(predict::predict_variant(question, words));
  }
  tell_step(line, {.title = fmt::format("A step of {}", arguments.model),
                   .text = predict::step_text(question, prediction),
                   .json = predict::step_json(question, prediction),
                   .variants = predict::table_of(variants)});
  return prediction.fits() ? ExitCode::as_expected : ExitCode::differs;
}

// Runs the scenario on `cluster`, or on its own cluster if `cluster` is empty.
Report run_on_cluster(const PredictArguments& arguments, Scenario& loaded, const std::string& cluster) {
  if (!traits_of(loaded.options.backend).has_cost_model) {
    throw UsageError(
        fmt::format("times are predicted for nccl only; this scenario runs on {}", loaded.options.backend));
  }
  if (!cluster.empty()) {
    put_on_cluster(loaded, cluster_of(cluster));
  }
  if (loaded.options.cluster) {
    loaded.options.cluster = asked_cluster(arguments, *loaded.options.cluster).cluster;
  }
  if (!loaded.options.cluster) {
    throw UsageError("the scenario names no cluster; add \"cluster\": \"h100-8\" to it, or use --cluster");
  }
  loaded.options.residuals = loaded.options.residuals || arguments.residuals;
  return scenario::run(loaded, {.timeline = true});
}

predict::VariantRow predicted_change(const PredictArguments& arguments, scenario::OrderedJson tree,
                                     const std::string& words, const WhatIf& what_if) {
  try {
    const predict::ScenarioChange change = predict::changed_scenario(std::move(tree), words);
    const std::string& cluster = change.cluster.empty() ? arguments.cluster : change.cluster;
    Scenario changed =
        scenario::parse_scenario(change.text, "--what-if " + words, {.brings_cluster = !cluster.empty()});
    predict::VariantRow row = what_if.measure(run_on_cluster(arguments, changed, cluster));
    row.name = words;
    row.slows_rank = change.slows_rank;
    return row;
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("--what-if: {}", error.what()));
  }
}

void count_tokens(std::int64_t tokens_per_step, std::vector<predict::VariantRow>& rows) {
  const Rank ranks = rows.front().ranks;
  for (predict::VariantRow& row : rows) {
    if (row.step > 0) {
      // More ranks have more to train on.
      const double tokens = static_cast<double>(tokens_per_step) * row.ranks / std::max<Rank>(ranks, 1);
      row.tokens_per_second = tokens * 1e9 / static_cast<double>(row.step);
    }
  }
}

ExitCode predict_scenario(const CommandLine& line) {
  const PredictArguments& arguments = line.predict;
  require_pages(line);
  Progress progress(line.progress_wish(), "starting");
  Scenario loaded = load_watched(arguments.subject, progress, {.brings_cluster = !arguments.cluster.empty()});
  checked_trace_options(line.trace, loaded.options.world_size);  // throws before it runs, not after
  const Report report = run_on_cluster(arguments, loaded, arguments.cluster);
  const viz::RunProfile profile = viz::profile_of(report);
  const std::vector<predict::VariantRow> rows = predicted_rows(
      arguments, predict::variant_row(report, profile),
      {.tree = [&] { return scenario::tree_of(arguments.subject, loaded); },
       .measure =
           [](const Report& changed) { return predict::variant_row(changed, viz::profile_of(changed)); },
       .begin = [&](const std::string& words) { progress.say(fmt::format("what if {}", words)); }});
  progress.clear();
  std::string text = viz::profile_text(report, profile);
  if (rows.front().tokens_per_second) {
    text += fmt::format("# {:.0f} tokens per second, {} a step\n", *rows.front().tokens_per_second,
                        *arguments.tokens_per_step);
  }
  tell_step(line, {.title = report.scenario,
                   .text = std::move(text),
                   .json = viz::profile_json(report, profile),
                   .variants = predict::table_of(rows),
                   .report = &report});
  return ExitCode::as_expected;
}

enum class Question : std::uint8_t { operation, model, program };

// Options that say nothing about what was asked are a mistake of the user's.
void refuse_misplaced(const CommandLine& line, Question question) {
  const PredictArguments& given = line.predict;
  const PredictArguments usual;
  struct Row {
    const char* option;
    bool is_given;
    Question question;
  };
  const Row rows[] = {
      {"--layout", !given.layout.empty(), Question::model},
      {"--gpu", !given.gpu.empty(), Question::model},
      {"--bytes", given.bytes != usual.bytes, Question::operation},
      {"--dtype", given.dtype != usual.dtype, Question::operation},
      {"--reduce-op", given.reduce_op != usual.reduce_op, Question::operation},
      {"--algorithm", !given.algorithm.empty(), Question::operation},
      {"--protocol", !given.protocol.empty(), Question::operation},
      {"--svg", !given.svg.empty(), Question::operation},
      {"--explain", given.explain, Question::operation},
      {"--measure", given.measure, Question::operation},
      {"--kernels-from", !given.kernels_from.empty(), Question::program},
      {"--tokens-per-step", given.tokens_per_step.has_value(), Question::program},
  };
  for (const Row& row : rows) {
    if (row.is_given && row.question != question) {
      throw UsageError(fmt::format("{} is about {}", row.option,
                                   row.question == Question::operation ? "a collective, such as all_reduce"
                                   : row.question == Question::model   ? "a model: give --model, too"
                                                                       : "a scenario or a script"));
    }
  }
  struct NotOfOperations {
    const char* option;
    bool is_given;
    const char* subjects;
  };
  const NotOfOperations not_of_operations[] = {
      {"--what-if", !given.what_if.empty(), "a model, a scenario or a script"},
      {"--report", !line.reports.empty(), "a model, a scenario or a script"},
      {"--trace", !line.trace.files.empty(), "a scenario or a script"},
      {"--trace-dir", !line.trace.directory.empty(), "a scenario or a script"},
  };
  for (const NotOfOperations& row : not_of_operations) {
    if (row.is_given && question == Question::operation) {
      throw UsageError(fmt::format("{} is about {}", row.option, row.subjects));
    }
  }
}

}  // namespace

AskedCluster asked_cluster(const PredictArguments& arguments, cost::Cluster cluster) {
  if (!arguments.nccl.empty()) {
    const auto release = cost::parse_release(arguments.nccl);
    if (!release) {
      throw UsageError(fmt::format("--nccl: unknown release '{}'; write one from 2.27 to {}", arguments.nccl,
                                   cost::release_name(cost::newest_release)));
    }
    cluster.release = *release;
  }
  cost::Launch& launch = cluster.launch;
  launch.gpus_per_process = std::max(launch.gpus_per_process, arguments.gpus_per_process);
  launch.cuda_graphs = launch.cuda_graphs || arguments.cuda_graphs;
  launch.symmetric_memory = launch.symmetric_memory || arguments.symmetric_memory;
  const std::vector<measured::BenchTable> tables = measured::read_bench_tables(arguments.calibrate);
  std::vector<cost::Measurement> rows = measured::measurements_of(tables, cluster);
  if (!tables.empty()) {
    cluster = measured::calibrate(std::move(cluster), rows);
  }
  return {std::move(cluster), std::move(rows)};
}

void put_on_cluster(Scenario& loaded, const cost::Cluster& cluster) {
  const int nodes_needed = (loaded.options.world_size + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  if (!loaded.options.devices.empty()) {
    throw UsageError("--cluster cannot be used with a scenario that assigns devices to its ranks");
  }
  if (cluster.nodes > 1 && cluster.nodes < nodes_needed) {
    throw UsageError(fmt::format("--cluster: {} ranks need {} nodes of {} GPUs", loaded.options.world_size,
                                 nodes_needed, cluster.gpus_per_node));
  }
  loaded.options.cluster = cluster;
  loaded.options.ranks_per_host =
      std::min(cluster.gpus_per_node, static_cast<int>(loaded.options.world_size));
}

void require_pages(const CommandLine& line) { report_files(line, page_kinds()); }

void tell_step(const CommandLine& line, const ToldStep& told) {
  const bool has_variants = told.variants.rows.size() > 1;
  const std::string json = has_variants ? predict::with_variants(told.json, told.variants) : told.json;
  emit(line, line.format == Format::json
                 ? json
                 : told.text + (has_variants ? "\n" + predict::text_of(told.variants) : ""));
  const auto page = [&told](std::ostream& out) {
    out << predict::page_of(told.title, told.text, told.variants, told.report);
  };
  write_reports(line, report_files(line, page_kinds()),
                {{"html", page}, {"json", [&json](std::ostream& out) { out << json; }}});
  if (told.report == nullptr) {
    return;
  }
  write_traces(line, *told.report, trace_options(line.trace, told.report->world_size));
  if (finding_of(told.report->verdict) != nullptr) {
    remark(fmt::format("rollcall: the run ends with verdict {}; the times cover the run up to that point",
                       verdict_word(told.report->verdict)));
  }
}

std::vector<predict::VariantRow> predicted_rows(const PredictArguments& arguments,
                                                predict::VariantRow as_it_is, const WhatIf& what_if) {
  as_it_is.name = "as it is";
  std::vector<predict::VariantRow> rows{std::move(as_it_is)};
  if (!arguments.what_if.empty()) {
    const scenario::OrderedJson tree = what_if.tree();
    for (const std::string& words : arguments.what_if) {
      what_if.begin(words);
      rows.push_back(predicted_change(arguments, tree, words, what_if));
    }
  }
  if (arguments.tokens_per_step) {
    count_tokens(*arguments.tokens_per_step, rows);
  }
  return rows;
}

bool names_a_file(const std::string& text) {
  return text.ends_with(".json") || text.find('/') != std::string::npos;
}

cost::Cluster cluster_of(const std::string& text) {
  if (names_a_file(text)) {
    return scenario::load_cluster(text);
  }
  cost::NamedCluster named = cost::find_cluster(text);
  if (!named.cluster) {
    throw UsageError(
        fmt::format("--cluster: {}{}", named.problem, hint(scenario::preset_suggestion(named, text))));
  }
  return std::move(*named.cluster);
}

scenario::OrderedJson cluster_in_scenario(const std::string& text) {
  cluster_of(text);  // throws if it is invalid
  if (!names_a_file(text)) {
    return text;
  }
  return scenario::OrderedJson::parse(std::string(scenario::read_source(text).text()), nullptr, true, true);
}

ExitCode predict_times(const CommandLine& line) {
  if (line.predict.subject.empty() == line.predict.model.empty()) {
    throw UsageError(
        line.predict.model.empty()
            ? "predict needs a collective such as all_reduce, a scenario file, a script, or --model"
            : "--model cannot be used with a collective, a scenario or a script");
  }
  if (!line.predict.model.empty()) {
    refuse_misplaced(line, Question::model);
    return predict_model(line);
  }
  const std::string& subject = line.predict.subject;
  if ((names_a_file(subject) || subject.ends_with(".py")) && !std::filesystem::exists(subject)) {
    throw UsageError(fmt::format("'{}': no such file", subject));
  }
  if (std::filesystem::is_regular_file(subject) && subject_of(subject) == Subject::script) {
    refuse_misplaced(line, Question::program);
    return predict_script(line);
  }
  if (!line.paths.empty()) {
    throw UsageError(fmt::format("'{}' has no arguments: only scripts have", subject));
  }
  const bool is_file = names_a_file(subject);
  refuse_misplaced(line, is_file ? Question::program : Question::operation);
  return is_file ? predict_scenario(line) : predict_op(line);
}

}  // namespace rollcall::cli
