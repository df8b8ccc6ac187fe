// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/scenario.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "pkg/base/count_text.h"
#include "pkg/base/parse.h"
#include "pkg/config/config_section.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/kube/duration.h"
#include "pkg/kube/quantity.h"
#include "pkg/policy/use_balance.h"
#include "pkg/simulator/kube_objects.h"
#include "pkg/simulator/recording_reader.h"
#include "pkg/usage/use_rebalancer.h"

namespace resmgr {

namespace {

using Kind = ConfigNode::Kind;

constexpr std::string_view kKnown =
    "a document is a Pod or another object of Kubernetes, or one of delete, resize, restart, wait, "
    "config, rebalance, use";

// `parts` is the largest number of names: 2 for NS/POD, 3 if a container may follow.
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
Status ReadPressure(std::string_view text, std::optional<double>& pressure) {
  const auto percent = ParseMilliCpu(text);
  if (!percent.ok() || percent->value < 0 || percent->value > 100'000)
    return InvalidArgument("must be a percentage, from 0 to 100");
  pressure = static_cast<double>(percent->value) / 1000;
  return OkStatus();
}

Status ReadCpus(std::string_view text, double& cpus) {
  const auto amount = ParseMilliCpu(text);
  if (!amount.ok()) return InvalidArgument("{}", Message(amount.status()));
  cpus = static_cast<double>(amount->value) / 1000;
  return cpus >= 0 ? OkStatus() : InvalidArgument("must not be negative");
}

// Reads how much it wants, or was measured to use.
StatusOr<double> ReadWanted(const ConfigNode& value, const std::string& path) {
  policy::ContainerUse use;
  if (value.kind == Kind::kScalar) {
    if (const Status read = ReadCpus(value.text, use.cpus); !read.ok())
      return ErrorAt(value, path, std::string(Message(read)));
    return use.cpus;
  }
  if (value.kind != Kind::kMap)
    return ErrorAt(value, path, "must be an amount of CPUs, or a map of cpus and pressure");
  ConfigSection reader(value, path);
  reader.Parse(
      "cpus", std::nullopt, [&use](std::string_view text) { return ReadCpus(text, use.cpus); },
      "CPUs that it uses");
  reader.Parse(
      "pressure", std::nullopt,
      [&use](std::string_view text) { return ReadPressure(text, use.pressure); },
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

}  // namespace

StatusOr<Scenario> ReadScenario(std::string_view text, std::string_view source,
                                std::vector<std::string>* notes, std::string_view node) {
  if (IsRecording(text)) return ReadRecording(text, source);
  RESMGR_ASSIGN_OR_RETURN(const std::vector<ConfigNode> documents,
                          ParseYamlDocuments(text, source));
  Scenario scenario;
  KubeObjects objects(node);
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
  const std::vector<std::string> named(
      unknown.begin(),
      std::next(unknown.begin(), static_cast<std::ptrdiff_t>(std::min(kNamed, unknown.size()))));
  const size_t more = unknown.size() - named.size();
  return {fmt::format("containers carry {} not in the scenario, left out: {}{}",
                      CountText(std::ssize(unknown), "claim"), fmt::join(named, ", "),
                      more > 0 ? fmt::format(" and {} more", more) : "")};
}

}  // namespace resmgr
