#include "sim/cost/tuner.h"

#include <nlohmann/json.hpp>

#include "sim/cost/presets.h"
#include "tests/catch.h"
#include "tests/unit/cost/tuner_oracle.h"

namespace rollcall::cost::tuner_test {

namespace {

using Json = nlohmann::json;

// The files print floats with six digits.
bool nearly(double ours, double theirs) { return ours == Approx(theirs).epsilon(2e-5).margin(1e-4); }

Tuner tuner_of(std::string_view cluster) {
  const Cluster found = find_cluster(cluster).cluster.value();
  return Tuner(communicator_of(found, found.nodes * found.gpus_per_node, found.nodes));
}

}  // namespace

TEST_CASE("the tuner's tables are NCCL's, entry by entry", "[cost]") {
  int entries = 0;
  for (const std::string& path : test::oracle_files()) {
    const Json file = test::read_json(path);
    const Tuner tuner(test::communicator_of_file(file));
    for (std::size_t f = 0; f < function_count; ++f) {
      const auto function = static_cast<Function>(f);
      const Json& table = file["lat_us_bw_GBps"][std::string(to_string(function))];
      for (std::size_t a = 0; a < algorithm_count; ++a) {
        for (std::size_t p = 0; p < protocol_count; ++p) {
          const auto algorithm = static_cast<Algorithm>(a);
          const auto protocol = static_cast<Protocol>(p);
          const std::string pair = std::string(to_string(algorithm)) + "/" + std::string(to_string(protocol));
          const Tuner::Entry& ours = tuner.entry(function, algorithm, protocol);
          CAPTURE(path, to_string(function), pair, ours.latency, ours.bandwidth);
          if (!table.contains(pair)) {
            CHECK(ours.bandwidth == 0);
            continue;
          }
          ++entries;
          CHECK(nearly(ours.latency, table[pair][0]));
          CHECK(nearly(ours.bandwidth, table[pair][1]));
        }
      }
    }
  }
  CHECK(entries >= 640);
}

TEST_CASE("the tuner chooses as NCCL does, in algorithm, protocol, channels and time", "[cost]") {
  int choices = 0;
  for (const std::string& path : test::oracle_files()) {
    const Json file = test::read_json(path);
    const Tuner tuner(test::communicator_of_file(file));
    for (const auto& [name, rows] : file["choice"].items()) {
      for (const Json& row : rows) {
        const auto choice = tuner.choose({.function = test::function_named(name), .bytes = row[0]});
        CAPTURE(path, name, row.dump());
        REQUIRE(choice.has_value());
        CHECK(to_string(choice->algorithm) == row[1].get<std::string>());
        CHECK(to_string(choice->protocol) == row[2].get<std::string>());
        CHECK(choice->channels == row[3].get<int>());
        CHECK(nearly(choice->time, row[4]));
        ++choices;
      }
    }
  }
  CHECK(choices >= 5396);
}

// A real NCCL 2.29.7 printed these, with one digit.
TEST_CASE("the tables agree with the log of a real run over sockets", "[cost]") {
  Communicator sockets;
  sockets.ranks = sockets.nodes = 2;
  sockets.compute_capability = 120;
  sockets.cpu = CpuVendor::intel;
  sockets.graphs.ring = {ChannelGraph::Pattern::ring, 2, 1.2, 1.2, PathType::loc, PathType::sys, true, 0};
  sockets.graphs.tree = {ChannelGraph::Pattern::tree, 2, 2.4, 1.2, PathType::loc, PathType::sys, true, 0};
  sockets.graphs.channels = 4;
  const Tuner tuner(sockets);
  const Json logs =
      test::read_json(std::string(ROLLCALL_SOURCE_DIR) + "/tests/data/nccl_tuner/published_tuner_logs.json");
  for (const auto& [function, table] : logs["tables"][0]["lat_us_bw_GBps"].items()) {
    for (const auto& [pair, printed] : table.items()) {
      const auto [algorithm, protocol] = test::pair_named(pair);
      const Tuner::Entry& ours = tuner.entry(test::function_named(function), algorithm, protocol);
      CAPTURE(function, pair, ours.latency, ours.bandwidth);
      CHECK(ours.bandwidth == Approx(printed[1].get<double>()).margin(0.0501));
      if (printed[1] != 0.0) {  // NCCL also prints a latency for disabled entries
        CHECK(ours.latency == Approx(printed[0].get<double>()).margin(0.0501));
      }
    }
  }
}

TEST_CASE("the switch from Ring to NVLS is where NCCL's users see it", "[cost]") {
  const Tuner tuner = tuner_of("h100-8");  // nccl-tests issue 309: Ring/LL to 1 MiB, NVLS from 2 MiB
  const auto algorithm = [&tuner](std::int64_t bytes) {
    return tuner.choose({.function = Function::all_reduce, .bytes = bytes})->algorithm;
  };
  CHECK(algorithm(1 << 20) == Algorithm::ring);
  CHECK(algorithm(2 << 20) == Algorithm::nvls);
}

TEST_CASE("NVLS is not chosen for what the switch cannot reduce", "[cost]") {
  const Tuner tuner = tuner_of("h100-8");
  const auto algorithm = [&tuner](Dtype dtype, ReduceOp reduce) {
    return tuner
        .choose({.function = Function::all_reduce, .bytes = 64 << 20, .dtype = dtype, .reduce = reduce})
        ->algorithm;
  };
  CHECK(algorithm(Dtype::float32, ReduceOp::sum) == Algorithm::nvls);
  CHECK(algorithm(Dtype::bfloat16, ReduceOp::max) == Algorithm::nvls);
  CHECK(algorithm(Dtype::float32, ReduceOp::max) == Algorithm::ring);
  CHECK(algorithm(Dtype::float32, ReduceOp::avg) == Algorithm::ring);
  CHECK(algorithm(Dtype::uint8, ReduceOp::sum) == Algorithm::ring);
}

TEST_CASE("a forced algorithm or protocol leaves only what it allows", "[cost]") {
  const Tuner tuner = tuner_of("a100-8");
  Request request{.function = Function::all_reduce, .bytes = 1024, .protocol = Protocol::simple};
  CHECK(tuner.choose(request)->protocol == Protocol::simple);
  request.algorithm = Algorithm::tree;
  CHECK(tuner.choose(request)->algorithm == Algorithm::tree);
  request.algorithm = Algorithm::nvls;
  CHECK_FALSE(tuner.choose(request).has_value());
}

TEST_CASE("an explanation has every pair once, the choice first, and a reason for each that cannot be",
          "[cost]") {
  const Tuner tuner = tuner_of("h100-2x8");
  const Request request{.function = Function::all_reduce, .bytes = 1 << 20};
  const auto candidates = tuner.explain(request);
  CHECK(candidates.size() == algorithm_count * protocol_count);
  const auto choice = tuner.choose(request).value();
  CHECK(candidates.front().algorithm == choice.algorithm);
  CHECK(candidates.front().protocol == choice.protocol);
  CHECK(candidates.front().time == choice.time);
  for (const Candidate& each : candidates) {
    CAPTURE(to_string(each.algorithm), to_string(each.protocol));
    const Tuner::Entry& entry = tuner.entry(request.function, each.algorithm, each.protocol);
    CHECK(each.excluded.empty() == (entry.bandwidth > 0));
  }
}

TEST_CASE("a network that reduces brings CollNet and NVLS between nodes into play", "[cost]") {
  Cluster cluster = find_cluster("h100-4x8").cluster.value();
  const auto bandwidth = [&cluster](Algorithm algorithm) {
    const Tuner tuner(communicator_of(cluster, 32, 4));
    return tuner.entry(Function::all_reduce, algorithm, Protocol::simple).bandwidth;
  };
  CHECK(bandwidth(Algorithm::collnet_direct) == 0);
  CHECK(bandwidth(Algorithm::collnet_chain) == 0);
  CHECK(bandwidth(Algorithm::nvls) == 0);
  cluster.links.sharp = true;
  CHECK(bandwidth(Algorithm::collnet_chain) == Approx(8 * 48 * 0.5));
  CHECK(bandwidth(Algorithm::collnet_direct) == Approx(8 * 48 * 0.85 * 0.5));
  CHECK(bandwidth(Algorithm::nvls) == Approx(8 * 48 * 32.0 / 62.0));
}

}  // namespace rollcall::cost::tuner_test
