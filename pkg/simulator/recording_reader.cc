// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/recording_reader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/kube/qos.h"
#include "pkg/model/resource_fields.h"

namespace resmgr {

namespace {

using nlohmann::json;
using Call = RecordedStep::Call;

// Other recorded calls change no container.
constexpr std::array<std::pair<std::string_view, Call>, 9> kCalls = {{
    {"RunPodSandbox", Call::kRunPod},
    {"UpdatePodSandboxResources", Call::kUpdatePod},
    {"StopPodSandbox", Call::kStopPod},
    {"RemovePodSandbox", Call::kRemovePod},
    {"CreateContainer", Call::kCreate},
    {"StartContainer", Call::kStart},
    {"StopContainer", Call::kStop},
    {"RemoveContainer", Call::kRemove},
    {"UpdateContainerResources", Call::kUpdate},
}};

const json* Member(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string Text(const json& object, std::string_view key) {
  const json* const value = Member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

// The CRI's proto3 does not distinguish 0 from unset. 64-bit numbers may be strings.
std::optional<int64_t> Number(const json& object, std::string_view key) {
  const json* const value = Member(object, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return ParseInt(value->get_ref<const std::string&>());
  if (!value->is_number_integer()) return std::nullopt;
  return value->get<int64_t>();
}

StringMap Texts(const json& object, std::string_view key) {
  const json* const map = Member(object, key);
  if (map == nullptr || !map->is_object()) return {};
  std::map<std::string, std::string> texts;
  for (const auto& [name, value] : map->items()) {
    if (value.is_string()) texts.emplace(name, value.get<std::string>());
  }
  return StringMap(texts.begin(), texts.end());
}

LinuxResources ReadResources(const json& object, std::string_view key = "resources") {
  LinuxResources resources;
  const json* const fields = Member(object, key);
  if (fields == nullptr) return resources;
  for (const NumberField& number : kNumberFields) {
    if (number.requested != nullptr) resources.*number.requested = Number(*fields, number.cri_name);
  }
  if (std::string cpus = Text(*fields, "cpuset_cpus"); !cpus.empty()) {
    resources.cpuset_cpus = std::move(cpus);
  }
  if (std::string mems = Text(*fields, "cpuset_mems"); !mems.empty()) {
    resources.cpuset_mems = std::move(mems);
  }
  const json* const pages = Member(*fields, "hugepage_limits");
  if (pages == nullptr || !pages->is_array()) return resources;
  for (const json& limit : *pages) {
    const auto bytes = Number(limit, "limit");
    resources.hugepage_limits[Text(limit, "page_size")] = static_cast<uint64_t>(bytes.value_or(0));
  }
  return resources;
}

Pod ReadPod(const json& fields) {
  Pod pod;
  pod.id = PodSandboxId(Text(fields, "id"));
  pod.uid = PodUid(Text(fields, "uid"));
  pod.name = Text(fields, "name");
  pod.namespace_name = Text(fields, "namespace");
  pod.cgroup_parent = Text(fields, "cgroup_parent");
  pod.runtime_handler = Text(fields, "runtime_handler");
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
  // Like the relay: an unknown sandbox has the properties in the request.
  if (!pod.name.empty()) request.pod = pod;
  request.name = Text(container, "name");
  request.attempt = static_cast<uint32_t>(Number(container, "attempt").value_or(0));
  request.labels = Texts(container, "labels");
  request.annotations = Texts(container, "annotations");
  request.has_resources = Member(container, "resources") != nullptr;
  request.resources = ReadResources(container);
  return request;
}

std::optional<Call> CallOf(const json& line) {
  const std::string op = Text(line, "op");
  for (const auto& [name, call] : kCalls) {
    if (op == name) return call;
  }
  return std::nullopt;
}

bool NeedsContainer(Call call) {
  return call != Call::kRunPod && call != Call::kUpdatePod && call != Call::kStopPod &&
         call != Call::kRemovePod;
}

// nullopt for a line that the simulation leaves out.
StatusOr<std::optional<RecordedStep>> ReadLine(const json& line) {
  const std::optional<Call> call = CallOf(line);
  const json* const ok = Member(line, "ok");
  if (!call || ok == nullptr || *ok != true || Member(line, "undecodable") != nullptr) {
    return std::nullopt;
  }
  RecordedStep step;
  step.call = *call;
  if (const json* const pod = Member(line, "pod")) step.pod = ReadPod(*pod);
  if (!NeedsContainer(step.call)) {
    if (step.pod.id.empty()) return InvalidArgument("the call has no pod id");
    return step;
  }
  const json* const container = Member(line, "container");
  if (container == nullptr) return InvalidArgument("the call has no container");
  step.container = ContainerId(Text(*container, "id"));
  if (step.container.empty()) return InvalidArgument("the call has no container id");
  if (step.call == Call::kCreate) step.request = ReadCreate(*container, step.pod);
  if (step.call == Call::kUpdate) step.resources = ReadResources(*container);
  return step;
}

// nullopt for a line of another kind.
StatusOr<std::optional<RecordedUse>> ReadUse(const json& line) {
  const json* const use = Member(line, "use");
  if (Text(line, "op") != "use" || use == nullptr || !use->is_object()) return std::nullopt;
  constexpr double kLongest = 366.0 * 24 * 3600;
  const json* const at = Member(line, "t");
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
  RESMGR_ASSIGN_OR_RETURN(std::optional<RecordedUse> use, ReadUse(line));
  if (use) return Step{.where = where, .action = *std::move(use)};
  RESMGR_ASSIGN_OR_RETURN(std::optional<RecordedStep> call, ReadLine(line));
  if (!call) return std::nullopt;
  return Step{.where = where, .action = *std::move(call)};
}

}  // namespace

bool IsRecording(std::string_view text) {
  if (!text.starts_with('{')) return false;
  const std::optional<json> header = ParseJson(text.substr(0, text.find('\n')));
  return header && !Text(*header, "recording").empty();
}

StatusOr<Scenario> ReadRecording(std::string_view text, std::string_view source) {
  Scenario scenario;
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
    auto step = ReadStep(*parsed, where);
    if (!step.ok()) return InvalidArgument("{}: {}", where, Message(step.status()));
    if (!step->has_value()) continue;
    if (scenario.size() >= kMaxRecordedCalls) {
      return InvalidArgument("{}: more than {} calls", where, kMaxRecordedCalls);
    }
    scenario.push_back(**std::move(step));
  }
  return scenario;
}

}  // namespace resmgr
