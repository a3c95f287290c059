// Tensors on devices that their collective cannot use: wording.h's word_device.

#include <fmt/core.h>

#include "sim/match/naming.h"
#include "sim/wording/phrasing.h"
#include "sim/wording/wording.h"

namespace rollcall::check {
namespace {

void word_cpu_tensor(const Evidence& evidence, const DeviceIncident& incident, const Call& call,
                     Finding& finding) {
  const RankSet ranks = RankSet::of(incident.ranks);
  const auto members = static_cast<std::size_t>(evidence.groups[incident.op.group].members->size());
  finding.headline = fmt::format("{} a CPU tensor to {}, and {} takes CUDA tensors only",
                                 with_verb(ranks, "passes", "pass"), call_phrase(call), evidence.backend);
  finding.cause = fmt::format("the tensor of {}{} was made on the CPU", call.op, origin_of(call));
  finding.advice =
      "move the tensor to the rank's GPU before the call (.to(device)), or make a gloo group for CPU tensors";
  finding.on_backend = fmt::format(
      "the call raises \"Tensors must be CUDA and dense\", in newer versions \"No backend type associated "
      "with device type cpu\"{}",
      ranks.size() < members ? "; the other ranks hang" : "");
}

void word_duplicate_gpu(const Evidence&, const DeviceIncident& incident, const Call& call, Finding& finding) {
  finding.headline = fmt::format("{} {}, which rank {} of group {} uses already",
                                 with_verb(RankSet::of(incident.ranks), "uses", "use"),
                                 to_string(incident.op.device), incident.other, call.group);
  finding.cause = "the ranks are on one host, and nothing gave each of them a GPU of its own";
  finding.advice =
      "call torch.cuda.set_device(local_rank) before the first collective, or give init_process_group a "
      "device_id";
  finding.on_backend =
      "NCCL refuses to make the communicator: \"Duplicate GPU detected\", or hangs when the processes cannot "
      "see each other's devices";
}

void word_stray_device(const Evidence&, const DeviceIncident& incident, const Call& call, Finding& finding) {
  finding.headline =
      fmt::format("{} from {} to {} in {}", with_verb(RankSet::of(incident.ranks), "moves", "move"),
                  to_string(incident.expected), to_string(incident.op.device), call_phrase(call));
  finding.cause = fmt::format(
      "a group's communicator stays with the device of the rank's first call; the tensor of {}{} is on "
      "another one",
      call.op, origin_of(call));
  finding.advice =
      "bind every tensor and every Joinable's join_device to the rank's own GPU "
      "(torch.cuda.set_device(local_rank)) before the first collective";
  finding.on_backend =
      "a second communicator is opened for the new device, which the other ranks never join: a hang, or "
      "\"tensor is not on the device passed at init\"";
}

struct DeviceWords {
  FindingKind kind;
  void (*put)(const Evidence&, const DeviceIncident&, const Call&, Finding&);
};

constexpr DeviceWords device_words[] = {{FindingKind::cpu_tensor, word_cpu_tensor},
                                        {FindingKind::duplicate_gpu, word_duplicate_gpu},
                                        {FindingKind::stray_device, word_stray_device}};

}  // namespace

void word_device(const Evidence& evidence, const DeviceIncident& incident, Finding& finding) {
  const Call call = name_call(evidence, incident.op, incident.seq);
  row_of(device_words, incident.kind).put(evidence, incident, call, finding);
}

}  // namespace rollcall::check
