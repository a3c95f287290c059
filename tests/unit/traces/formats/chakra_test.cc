#include "traces/formats/chakra.h"

#include <fmt/core.h>
#include <protozero/pbf_writer.hpp>

#include "tests/unit/traces/folder.h"

namespace rollcall::traces::chakra_test {
namespace {
using test::diagnosis_of;
using test::Folder;

// Files like those of Chakra's own writer: every message follows its length.
class ChakraFile {
 public:
  ChakraFile() {
    std::string metadata;
    protozero::pbf_writer(metadata).add_string(1, "0.0.4");
    put(metadata);
  }

  ChakraFile& node(int type, std::int64_t comm_type, std::int64_t size, const std::string& group = "1") {
    return add(type, {{"comm_type", comm_type}, {"comm_size", size}}, group);
  }
  ChakraFile& message(int type, std::int64_t source, std::int64_t destination) {
    return add(type, {{"comm_src", source}, {"comm_dst", destination}, {"comm_size", 64}}, "1");
  }

  std::string bytes;

 private:
  ChakraFile& add(int type, const std::vector<std::pair<std::string, std::int64_t>>& numbers,
                  const std::string& group) {
    std::string data;
    protozero::pbf_writer writer(data);
    writer.add_uint64(1, ++id_);
    writer.add_string(2, "comm");
    writer.add_enum(3, type);
    for (const auto& [name, value] : numbers) {
      protozero::pbf_writer attribute(writer, 10);
      attribute.add_string(1, name);
      attribute.add_int64(9, value);
    }
    {
      protozero::pbf_writer attribute(writer, 10);
      attribute.add_string(1, "pg_name");
      attribute.add_string(29, group);
    }
    put(data);
    return *this;
  }

  void put(const std::string& message) {
    protozero::write_varint(std::back_inserter(bytes), message.size());
    bytes += message;
  }

  std::uint64_t id_ = 0;
};

constexpr int compute = 4;
constexpr int send = 5;
constexpr int recv = 6;
constexpr int collective = 7;
constexpr std::int64_t all_reduce = 0;
constexpr std::int64_t all_gather = 2;

}  // namespace

TEST_CASE("Chakra traces are read with their file of groups", "[traces]") {
  const Folder folder;
  folder.write("comm_group.json", R"({"1": [0, 1, 2]})");
  for (int rank = 0; rank < 3; ++rank) {
    ChakraFile file;
    file.node(collective, all_reduce, 4096).node(compute, -1, 0).node(collective, all_gather, 64);
    folder.write(fmt::format("llama.{}.et", rank), file.bytes);
  }
  const ReadResult result = read_recordings({folder.path()});
  REQUIRE(result.job.ranks.size() == 3);
  const check::RankDump& dump = result.job.ranks[1];
  REQUIRE(dump.records.size() == 2);
  CHECK(result.job.calls[dump.records[1].call].op == "all_gather");
  CHECK(result.job.groups[dump.records[1].group].members == std::vector<Rank>{0, 1, 2});
  CHECK(diagnosis_of(folder).finding.kind == FindingKind::no_fault);
}

TEST_CASE("a Chakra trace that lacks a call names its rank, packed or not", "[traces]") {
  const Folder folder;
  for (int rank = 0; rank < 3; ++rank) {
    ChakraFile file;
    file.node(collective, all_reduce, 4096).node(collective, all_reduce, 64);
    if (rank != 2) {
      file.node(collective, all_reduce, 64);
    }
    folder.write_packed(fmt::format("llama.{}.et.gz", rank), file.bytes);
  }
  const Diagnosis diagnosis = diagnosis_of(folder);
  CHECK(diagnosis.finding.kind == FindingKind::stuck_host);
  CHECK(diagnosis.finding.culprits == RankSet{2});
}

TEST_CASE("Chakra's messages find each other", "[traces]") {
  const Folder folder;
  folder.write("x.0.et", ChakraFile().message(send, 0, 1).bytes);
  folder.write("x.1.et", ChakraFile().message(recv, 0, 1).bytes);
  CHECK(diagnosis_of(folder).finding.kind == FindingKind::no_fault);
}

TEST_CASE("a cut Chakra trace is an error with its place", "[traces]") {
  const Folder folder;
  const std::string whole =
      ChakraFile().node(collective, all_reduce, 4096).node(collective, all_reduce, 64).bytes;
  for (std::size_t size = 20; size < whole.size(); ++size) {
    folder.write("x.0.et", whole.substr(0, size));
    const ReadResult result = read_recordings({folder.path("x.0.et")});
    if (result.job.ranks.empty()) {
      REQUIRE(result.problems.size() == 1);
      CHECK_THAT(result.problems.front().message, Contains("truncated") || Contains("unknown format"));
    } else {
      CHECK(result.job.ranks.front().records.size() == 1);  // cut between two nodes
    }
  }
}

}  // namespace rollcall::traces::chakra_test
