// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/scenario.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "pkg/base/amount_text.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/config/config_section.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/kube/qos.h"
#include "pkg/kube/quantity.h"
#include "pkg/model/resource_fields.h"
#include "pkg/policy/use_balance.h"
#include "pkg/simulator/kube_objects.h"
#include "pkg/usage/use_rebalancer.h"

namespace resmgr {
namespace {

using Kind = ConfigNode::Kind;

constexpr std::string_view kKnown =
    "a document is a Pod or another object of Kubernetes, or one of delete, resize, restart, wait, "
    "config, rebalance, use";

// `parts` is the largest number of names: 2 for NS/POD, 3 if a container is allowed.
StatusOr<Target> ReadTarget(const ConfigNode& value, std::string_view path, size_t parts) {
  const std::vector<std::string_view> names = Split(value.text, '/');
  bool valid = value.kind == Kind::kScalar && names.size() >= 2 && names.size() <= parts;
  for (const std::string_view name : names)
    valid = valid && !name.empty();
  if (!valid) {
    return ErrorAt(value, path,
                   parts == 2 ? "must be NAMESPACE/POD" : "must be NAMESPACE/POD[/CONTAINER]");
  }
  return Target{.namespace_name = std::string(names[0]),
                .pod = std::string(names[1]),
                .container = names.size() > 2 ? std::string(names[2]) : std::string()};
}

StatusOr<ResizeStep> ReadResize(const ConfigNode& value) {
  if (value.kind != Kind::kMap) return ErrorAt(value, "resize", "must be a map");
  ResizeStep step;
  ConfigSection reader(value, "resize");
  const ConfigNode* const pod = reader.Node("pod");
  reader.Text("container", step.target.container, "the container whose resources change");
  const ConfigNode* const resources = reader.Node("resources");
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  if (pod == nullptr) return ErrorAt(value, "resize.pod", "is missing");
  if (step.target.container.empty()) return ErrorAt(value, "resize.container", "is missing");
  if (resources == nullptr || resources->kind != Kind::kMap) {
    return ErrorAt(value, "resize.resources", "must be a map of requests and limits");
  }
  std::string container = std::move(step.target.container);
  RESMGR_ASSIGN_OR_RETURN(step.target, ReadTarget(*pod, "resize.pod", 2));
  step.target.container = std::move(container);
  RESMGR_ASSIGN_OR_RETURN(step.change, ReadResourceResize(*resources, "resize.resources."));
  return step;
}

StatusOr<RebalanceStep> ReadRebalance(const ConfigNode& value) {
  if (value.kind != Kind::kMap) {
    if (value.text == "preview" || value.text == "apply")
      return RebalanceStep{.apply = value.text == "apply"};
    return ErrorAt(value, "rebalance", "must be preview or apply");
  }
  RebalanceStep step;
  int64_t moves = -1;
  ConfigSection reader(value, "rebalance");
  reader.Bool("apply", step.apply, "whether the containers move");
  reader.Choice<bool>("by", {{"rules", false}, {"use", true}}, step.by_use, "what decides");
  reader.Int("moves", 0, UseRebalancer::kMostMoves, moves, "how many move by use at most");
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  if (moves >= 0) step.moves = static_cast<int>(moves);
  return step;
}

// A percentage up to 100.
StatusOr<double> ReadPressure(std::string_view text) {
  const auto percent = ParseMilliCpu(text);
  if (!percent.ok() || percent->value < 0 || percent->value > 100'000)
    return InvalidArgument("must be a percentage, from 0 to 100");
  return static_cast<double>(percent->value) / 1000;
}

StatusOr<double> ReadCpus(std::string_view text) {
  RESMGR_ASSIGN_OR_RETURN(const MilliCpu amount, ParseMilliCpu(text));
  if (amount.value < 0) return InvalidArgument("must not be negative");
  return static_cast<double>(amount.value) / 1000;
}

// Reads how many CPUs a container wants. If its use is given with a pressure, the wish follows from
// both.
StatusOr<double> ReadWanted(const ConfigNode& value, const std::string& path) {
  if (value.kind == Kind::kScalar) {
    StatusOr<double> cpus = ReadCpus(value.text);
    return cpus.ok() ? cpus : ErrorAt(value, path, Message(cpus.status()));
  }
  if (value.kind != Kind::kMap)
    return ErrorAt(value, path, "must be an amount of CPUs, or a map of cpus and pressure");
  policy::ContainerUse use;
  ConfigSection reader(value, path);
  reader.Parse("cpus", std::nullopt, use.cpus, ReadCpus, "CPUs that it uses");
  reader.Parse("pressure", std::nullopt, use.pressure, ReadPressure,
               "percent of the time in which it waits");
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  return policy::WantedCpus(use, 0, 0);
}

StatusOr<UseStep> ReadUse(const ConfigNode& value) {
  if (value.kind != Kind::kMap) return ErrorAt(value, "use", "must be a map of containers");
  UseStep step;
  for (const ConfigNode::Entry& entry : value.entries) {
    ConfigNode name = entry.value;
    name.kind = Kind::kScalar;
    name.text = entry.key;
    UseStep::Entry& use = step.entries.emplace_back();
    RESMGR_ASSIGN_OR_RETURN(use.target, ReadTarget(name, "use", 3));
    RESMGR_ASSIGN_OR_RETURN(use.wanted,
                            ReadWanted(entry.value, "use." + Printable(entry.key, 200)));
  }
  return step;
}

Status ReadControl(const ConfigNode::Entry& entry, Step& step) {
  const ConfigNode& value = entry.value;
  if (entry.key == "delete") {
    RESMGR_ASSIGN_OR_RETURN(Target target, ReadTarget(value, "delete", 3));
    step.action = DeleteStep{std::move(target)};
  } else if (entry.key == "resize") {
    RESMGR_ASSIGN_OR_RETURN(step.action, ReadResize(value));
  } else if (entry.key == "restart") {
    if (value.text != "relay") return ErrorAt(value, "restart", "only \"relay\" can be restarted");
    step.action = RestartStep{};
  } else if (entry.key == "wait") {
    const auto time = ParseDuration(value.text, std::chrono::hours(24));
    if (!time) return ErrorAt(value, "wait", "must be a time of at most 24h, as 90s or 1m30s");
    step.action = WaitStep{*time};
  } else if (entry.key == "config") {
    if (value.kind != Kind::kMap) return ErrorAt(value, "config", "must be a map");
    step.action = ConfigStep{value};
  } else if (entry.key == "rebalance") {
    RESMGR_ASSIGN_OR_RETURN(step.action, ReadRebalance(value));
  } else if (entry.key == "use") {
    RESMGR_ASSIGN_OR_RETURN(step.action, ReadUse(value));
  } else {
    return ErrorAt(value, Printable(entry.key, 64), kKnown);
  }
  return OkStatus();
}

StatusOr<Step> ReadControlDocument(const ConfigNode& document) {
  Step step;
  step.where = Where(document);
  for (const ConfigNode::Entry& entry : document.entries) {
    if (entry.key == "metadata" || entry.key == "spec") {
      return ErrorAt(document, "kind", "is missing; a Pod has \"kind: Pod\"");
    }
  }
  if (document.entries.size() != 1) return ErrorAt(document, "", kKnown);
  RESMGR_RETURN_IF_ERROR(ReadControl(document.entries.front(), step));
  return step;
}

using json_path::Find;
using json_path::TextAt;
using nlohmann::json;
using Call = RecordedStep::Call;

struct KnownCall {
  std::string_view name;
  Call call;
  bool of_container;
};

// Other recorded calls change no container.
constexpr std::array<KnownCall, 9> kCalls = {{
    {"RunPodSandbox", Call::kRunPod, false},
    {"UpdatePodSandboxResources", Call::kUpdatePod, false},
    {"StopPodSandbox", Call::kStopPod, false},
    {"RemovePodSandbox", Call::kRemovePod, false},
    {"CreateContainer", Call::kCreate, true},
    {"StartContainer", Call::kStart, true},
    {"StopContainer", Call::kStop, true},
    {"RemoveContainer", Call::kRemove, true},
    {"UpdateContainerResources", Call::kUpdate, true},
}};

// The CRI's proto3 does not distinguish 0 from unset. 64-bit numbers may be strings.
std::optional<int64_t> Number(const json& object, std::string_view key) {
  const json* const value = Find(object, {key});
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return ParseInt(value->get_ref<const std::string&>());
  if (!value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

StringMap Texts(const json& object, std::string_view key) {
  const json* const map = Find(object, {key});
  if (map == nullptr || !map->is_object()) return {};
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : map->items()) {
    if (value.is_string()) texts.emplace(name, value.get<std::string>());
  }
  return StringMap(texts.begin(), texts.end());
}

LinuxResources ReadResources(const json& object, std::string_view key = "resources") {
  LinuxResources resources;
  const json* const fields = Find(object, {key});
  if (fields == nullptr) return resources;
  for (const NumberField& number : kNumberFields) {
    if (number.requested != nullptr) resources.*number.requested = Number(*fields, number.cri_name);
  }
  if (std::string cpus = TextAt(*fields, {"cpuset_cpus"}); !cpus.empty()) {
    resources.cpuset_cpus = std::move(cpus);
  }
  if (std::string mems = TextAt(*fields, {"cpuset_mems"}); !mems.empty()) {
    resources.cpuset_mems = std::move(mems);
  }
  const json* const pages = Find(*fields, {"hugepage_limits"});
  if (pages == nullptr || !pages->is_array()) return resources;
  for (const json& limit : *pages) {
    const auto bytes = Number(limit, "limit");
    resources.hugepage_limits[TextAt(limit, {"page_size"})] =
        static_cast<uint64_t>(bytes.value_or(0));
  }
  return resources;
}

Pod ReadPod(const json& fields) {
  Pod pod;
  pod.id = PodSandboxId(TextAt(fields, {"id"}));
  pod.uid = PodUid(TextAt(fields, {"uid"}));
  pod.name = TextAt(fields, {"name"});
  pod.namespace_name = TextAt(fields, {"namespace"});
  pod.cgroup_parent = TextAt(fields, {"cgroup_parent"});
  pod.runtime_handler = TextAt(fields, {"runtime_handler"});
  pod.labels = Texts(fields, "labels");
  pod.annotations = Texts(fields, "annotations");
  pod.overhead = ReadResources(fields, "overhead");
  pod.resources = ReadResources(fields);
  if (const auto cgroup = ParsePodCgroup(pod.cgroup_parent)) pod.qos = cgroup->qos;
  return pod;
}

CreateRequest ReadCreate(const json& container, const Pod& pod) {
  CreateRequest request;
  request.pod_id = pod.id;
  // If the sandbox is unknown, the request's data of the pod count, as in the relay.
  if (!pod.name.empty()) request.pod = pod;
  request.name = TextAt(container, {"name"});
  request.attempt = static_cast<uint32_t>(Number(container, "attempt").value_or(0));
  request.labels = Texts(container, "labels");
  request.annotations = Texts(container, "annotations");
  request.has_resources = Find(container, {"resources"}) != nullptr;
  request.resources = ReadResources(container);
  return request;
}

// nullopt for a line that the simulation leaves out.
StatusOr<std::optional<RecordedStep>> ReadLine(const json& line) {
  const auto* const known = std::ranges::find(kCalls, TextAt(line, {"op"}), &KnownCall::name);
  const json* const ok = Find(line, {"ok"});
  if (known == kCalls.end() || ok == nullptr || *ok != true ||
      Find(line, {"undecodable"}) != nullptr) {
    return std::nullopt;
  }
  RecordedStep step;
  step.call = known->call;
  if (const json* const pod = Find(line, {"pod"})) step.pod = ReadPod(*pod);
  if (!known->of_container) {
    if (step.pod.id.empty()) return InvalidArgument("the call has no pod id");
    return step;
  }
  const json* const container = Find(line, {"container"});
  if (container == nullptr) return InvalidArgument("the call has no container");
  step.container = ContainerId(TextAt(*container, {"id"}));
  if (step.container.empty()) return InvalidArgument("the call has no container id");
  if (step.call == Call::kCreate) step.request = ReadCreate(*container, step.pod);
  if (step.call == Call::kUpdate) step.resources = ReadResources(*container);
  return step;
}

// nullopt for a line of another kind.
StatusOr<std::optional<RecordedUse>> ReadRecordedUse(const json& line) {
  const json* const use = Find(line, {"use"});
  if (TextAt(line, {"op"}) != "use" || use == nullptr || !use->is_object()) return std::nullopt;
  constexpr double kLongest = 366.0 * 24 * 3600;
  const json* const at = Find(line, {"t"});
  const double seconds = at != nullptr && at->is_number() ? at->get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kLongest)) return InvalidArgument("the time is no time");
  RecordedUse step{.at = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000))};
  for (const auto& [id, figures] : use->items()) {
    const bool valid =
        figures.is_array() && !figures.empty() && figures.size() <= 2 &&
        std::ranges::all_of(figures, [](const json& figure) {
          return figure.is_number() && figure.get<double>() >= 0 && figure.get<double>() <= 100'000;
        });
    if (!valid) return InvalidArgument("the use of {} is not CPUs and percent", Printable(id, 64));
    auto& [container, one] = step.use.emplace_back();
    container = ContainerId(id);
    one.cpus = figures[0].get<double>();
    if (figures.size() == 2) one.pressure = figures[1].get<double>();
  }
  return step;
}

StatusOr<std::optional<Step>> ReadStep(const json& line, const std::string& where) {
  RESMGR_ASSIGN_OR_RETURN(std::optional<RecordedUse> use, ReadRecordedUse(line));
  if (use) return Step{.where = where, .action = *std::move(use)};
  RESMGR_ASSIGN_OR_RETURN(std::optional<RecordedStep> call, ReadLine(line));
  if (!call) return std::nullopt;
  return Step{.where = where, .action = *std::move(call)};
}

// How many calls the recording lacks by this line: those that were lost, and one that could not be
// read when it was recorded.
int64_t MissingBy(const json& line) {
  constexpr int64_t kMost = 1'000'000'000;
  if (Find(line, {"undecodable"}) != nullptr) return 1;
  return std::clamp<int64_t>(Number(line, "lost_calls").value_or(0), 0, kMost);
}

// The calls of a recording, in the order of their ends. Errors are those of ReadScenario, and so
// are `notes`.
StatusOr<Scenario> ReadRecording(std::string_view text, std::string_view source,
                                 std::vector<std::string>* notes) {
  Scenario scenario;
  int64_t missing = 0;
  const bool ends_well = text.ends_with('\n');
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string where = fmt::format("{}:{}", source, ++number);
    if (line.empty()) continue;
    const std::optional<json> parsed = ParseJson(line);
    // The last line of a relay that was killed may be incomplete.
    if (!parsed && text.empty() && !ends_well && number > 1) break;
    if (!parsed || !parsed->is_object())
      return InvalidArgument("{}: it is not a JSON object", where);
    if (number == 1) {
      const auto version = Number(*parsed, "version");
      if (version == 1) continue;
      return InvalidArgument("{}: recordings of version 1 are known, not this one", where);
    }
    missing += MissingBy(*parsed);
    auto step = ReadStep(*parsed, where);
    if (!step.ok()) return InvalidArgument("{}: {}", where, Message(step.status()));
    if (!step->has_value()) continue;
    if (scenario.size() >= kMaxRecordedCalls) {
      return InvalidArgument("{}: more than {} calls", where, kMaxRecordedCalls);
    }
    scenario.push_back(**std::move(step));
  }
  if (missing > 0 && notes != nullptr) {
    notes->push_back(
        fmt::format("{}: the recording lacks {}: from there on, placements may differ "
                    "from the node's",
                    source, CountText(missing, "call")));
  }
  return scenario;
}

}  // namespace

StatusOr<Scenario> ReadScenario(std::string_view text, std::string_view source,
                                std::vector<std::string>* notes, std::string_view node) {
  if (IsRecording(text)) return ReadRecording(text, source, notes);
  RESMGR_ASSIGN_OR_RETURN(const std::vector<ConfigNode> documents,
                          ParseYamlDocuments(text, source));
  Scenario scenario;
  KubeObjects objects(node);
  for (const ConfigNode& document : documents)
    objects.Announce(document);
  for (const ConfigNode& document : documents) {
    if (document.kind == Kind::kNull) continue;
    if (document.kind != Kind::kMap) return ErrorAt(document, "", kKnown);
    if (IsKubeObject(document)) {
      RESMGR_RETURN_IF_ERROR(objects.Read(document));
      for (ClaimOfObject& claim : objects.TakeClaims())
        scenario.push_back({.where = std::move(claim.where), .action = std::move(claim.claim)});
      for (PodOfObject& pod : objects.TakePods())
        scenario.push_back({.where = std::move(pod.where), .action = std::move(pod.manifest)});
      continue;
    }
    StatusOr<Step> step = ReadControlDocument(document);
    if (!step.ok()) return step.status();
    scenario.push_back(*std::move(step));
  }
  if (notes != nullptr) {
    for (const std::string& note : objects.Notes())
      notes->push_back(fmt::format("{}: {}", source, note));
  }
  return scenario;
}

std::vector<std::string> NotesOnClaims(const Scenario& scenario) {
  constexpr size_t kNamed = 3;
  std::set<std::string> known;
  for (const Step& step : scenario) {
    if (const auto* const claim = std::get_if<ClaimDocument>(&step.action))
      known.insert(claim->name.ToString());
  }
  if (known.empty()) return {};
  std::set<std::string> unknown;
  for (const Step& step : scenario) {
    const auto* const pod = std::get_if<Manifest>(&step.action);
    if (pod == nullptr) continue;
    for (const std::string& claim : pod->Claims())
      if (!known.contains(claim)) unknown.insert(claim);
  }
  if (unknown.empty()) return {};
  return {fmt::format("containers carry {} not in the scenario, left out: {}",
                      CountText(std::ssize(unknown), "claim"),
                      FirstOf({unknown.begin(), unknown.end()}, kNamed))};
}

bool IsRecording(std::string_view text) {
  if (!text.starts_with('{')) return false;
  const std::optional<json> header = ParseJson(text.substr(0, text.find('\n')));
  return header && !TextAt(*header, {"recording"}).empty();
}

}  // namespace resmgr
