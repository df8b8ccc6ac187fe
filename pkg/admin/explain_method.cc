// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/explain_method.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "pkg/admin/history_json.h"
#include "pkg/admin/method_parts.h"
#include "pkg/admin/report_json.h"
#include "pkg/admin/stage_json.h"
#include "pkg/allocator/want_of_room.h"
#include "pkg/classes/host_classes.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/dra/cdi_files.h"
#include "pkg/kube/annotations.h"
#include "pkg/node/machine_watch.h"
#include "pkg/node/node_problems.h"
#include "pkg/topology/machine.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kLookPatience{500};

// Explains containers of the null policy: what plugins have changed, if the front door knows
// containers.
StatusOr<OrderedJson> ExplainSeen(const NodeView& node, std::string_view what,
                                  const ContainerChoice& choice) {
  const std::vector<SeenContainer> seen = node.door.seen();
  if (seen.empty()) return Manager(node).status();
  const FieldOwners& owners = node.pipeline.owners();
  StatusOr<OrderedJson> found = ExplainSeenJson(seen, owners, what, choice);
  if (found.ok() || what.empty()) return found;
  found = ExplainSeenJson(seen, owners, what, choice, NameMatch::kBeginning);
  if (found.ok()) return found;
  std::vector<std::string> names;
  for (const SeenContainer& one : seen) {
    if (choice.Includes(one.pod)) names.push_back(FullName(one.pod, one.container.name));
  }
  return NoSuchContainer(what, names);
}

// Adds to each container what other parts of the node know about it.
void AddTexts(const NodeView& node, OrderedJson& containers) {
  for (OrderedJson& container : containers) {
    const std::string id = container.value("id", "");
    const auto add = [&container](const char* member, const std::string& text) {
      if (!text.empty()) container[member] = text;
    };
    add("cpuFile", node.why_no_cpu_file(ContainerId(id)));
    add("audit", node.auditor.FoundOf(ContainerId(id)));
    if (node.usage != nullptr) add("advice", node.usage->AdviceOf(id));
    if (node.classes != nullptr) {
      const OrderedJson classes = ContainerClassesJson(node.classes->report(), id);
      if (!classes.empty()) container["classes"] = classes;
      add("classesIgnored", node.classes->NoteOf(id));
    }
    if (node.by_use != nullptr) add("byUse", node.by_use->AboutOf(id));
  }
}

// Adds the problems that name a container or its pod.
void AddProblems(const NodeView& node, OrderedJson& containers) {
  const std::vector<Problem> problems = ProblemsOf(node);
  if (problems.empty()) return;
  for (OrderedJson& container : containers) {
    const std::string pod =
        fmt::format("{}/{}", container.value("namespace", ""), container.value("pod", ""));
    const std::string name = fmt::format("{}/{}", pod, container.value("name", ""));
    std::vector<Problem> hit;
    std::ranges::copy_if(problems, std::back_inserter(hit), [&](const Problem& problem) {
      return std::ranges::any_of(problem.objects, [&](const std::string& object) {
        return object == name || object == pod;
      });
    });
    if (!hit.empty()) container["problems"] = ProblemsJson(hit);
  }
}

// Adds to each container why it has fewer CPUs than it asks for: some are offline.
void AddOffline(const NodeView& node, OrderedJson& containers) {
  const CpuSet offline = OfflineCpus(node.machine) | node.offline();
  if (offline.empty()) return;
  for (OrderedJson& container : containers) {
    const std::string reason = container.value("reason", "");
    if (LacksCpus(reason))
      container["reason"] = fmt::format("{}; {} offline", reason, CpusAre(offline));
  }
}

// Adds annotations that have no effect, probably because they are mistyped.
void AddMistyped(const ResourceManager& manager, OrderedJson& containers) {
  std::map<PodSandboxId, std::vector<std::string_view>> names;
  std::map<std::string_view, const Pod*> pods;  // by the ids of their containers
  manager.snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    names[pod.id].push_back(container.name);
    pods.emplace(container.id.value(), &pod);
  });
  for (OrderedJson& container : containers) {
    const std::string id = container.value("id", "");
    const auto pod = pods.find(id);
    if (pod == pods.end()) continue;
    const StringMap& annotations = pod->second->annotations;
    std::vector<std::string> typos = MistypedAnnotations(annotations);
    const std::vector<std::string_view>& of_pod = names[pod->second->id];
    std::ranges::move(MistypedContainers(annotations, of_pod), std::back_inserter(typos));
    std::ranges::move(MistypedInMaps(annotations, of_pod), std::back_inserter(typos));
    if (!typos.empty()) container["mistyped"] = typos;
  }
}

// The containers of a reply whose memory may lie on other nodes than decided, and their positions
// in the reply.
struct BoundContainers {
  std::vector<size_t> positions{};
  std::vector<MemorySubject> subjects{};
};

BoundContainers BoundIn(const OrderedJson& containers, const ResourceManager* manager) {
  BoundContainers bound;
  if (manager == nullptr) return bound;
  std::map<std::string, size_t> positions;
  for (size_t i = 0; i < containers.size(); ++i)
    positions.emplace(containers[i].value("id", ""), i);
  manager->snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const auto found = positions.find(std::string(container.id.value()));
    const std::optional<NodeSet>& nodes = container.placement.mems;
    if (found == positions.end() || container.state != ContainerState::kRunning || !nodes) return;
    bound.positions.push_back(found->second);
    bound.subjects.push_back({.cgroup_parent = pod.cgroup_parent,
                              .id = std::string(container.id.value()),
                              .nodes = *nodes});
  });
  return bound;
}

// Adds to refused containers what each pool holds.
void AddHeld(const ResourceManager& manager, OrderedJson& containers) {
  OrderedJson held;
  for (OrderedJson& container : containers) {
    if (!container.contains("refused")) continue;
    if (held.is_null()) held = HeldByPoolJson(manager.policy(), manager.snapshot());
    container["held"] = held;
  }
}

StatusOr<OrderedJson> ExplainNamed(const NodeView& node, const ResourceManager& manager,
                                   std::string_view what, const ContainerChoice& choice,
                                   NameMatch match) {
  StatusOr<OrderedJson> explained = ExplainJson(manager, what, choice, match);
  if (explained.ok()) {
    AddOwners(node.pipeline.owners(), *explained);
    AddTexts(node, *explained);
    AddOffline(node, *explained);
    AddMistyped(manager, *explained);
  }
  return WithRefusals(std::move(explained), node.host.history(), manager.snapshot(), what, choice,
                      match);
}

// The names of all containers that `explain` could find, for suggestions.
std::vector<std::string> KnownNames(const NodeView& node, const ResourceManager& manager,
                                    const ContainerChoice& choice) {
  std::vector<std::string> names;
  const WithClaims all(manager.snapshot(), manager.held_claims());
  all.ForEachContainer([&](const Pod& pod, const Container& container) {
    if (choice.Includes(pod)) names.push_back(FullName(pod, container.name));
  });
  const History& history = node.host.history();
  for (const History::Entry* const entry : history.Last(history.capacity())) {
    if (entry->event == History::Event::kRefused) names.push_back(entry->container);
  }
  return names;
}

// The containers of this name or, if there are none, those whose names begin so.
StatusOr<OrderedJson> ExplainFound(const NodeView& node, const ResourceManager& manager,
                                   std::string_view what, const ContainerChoice& choice) {
  StatusOr<OrderedJson> explained = ExplainNamed(node, manager, what, choice, NameMatch::kWhole);
  if (explained.ok() || what.empty()) return explained;
  return ExplainNamed(node, manager, what, choice, NameMatch::kBeginning);
}

// Explains containers under the null policy: those that are not released yet from the choice of a
// former policy, then those that plugins have changed.
StatusOr<OrderedJson> ExplainUnderNull(const NodeView& node, std::string_view what,
                                       const ContainerChoice& choice) {
  OrderedJson bound = OrderedJson::array();
  if (const ResourceManager* const releasing = Releasing(node)) {
    bound = ExplainFound(node, *releasing, what, choice).value_or(OrderedJson::array());
    const auto released = [](const OrderedJson& one) { return one.value("settled", true); };
    bound.erase(std::remove_if(bound.begin(), bound.end(), released), bound.end());
    AddProblems(node, bound);
  }
  StatusOr<OrderedJson> seen = ExplainSeen(node, what, choice);
  if (bound.empty() || !seen.ok()) return bound.empty() ? seen : bound;
  std::ranges::copy_if(*seen, std::back_inserter(bound), [&bound](const OrderedJson& one) {
    return std::ranges::none_of(bound,
                                [&one](const auto& known) { return known["id"] == one["id"]; });
  });
  return bound;
}

StatusOr<OrderedJson> ExplainPlaced(const NodeView& node, const nlohmann::json& request) {
  RESMGR_ASSIGN_OR_RETURN(const std::string what, TextOf(request, "what"));
  RESMGR_ASSIGN_OR_RETURN(const ContainerChoice choice, ChoiceOf(request));
  const ResourceManager* const manager = node.host.manager();
  if (manager == nullptr) return ExplainUnderNull(node, what, choice);
  StatusOr<OrderedJson> explained = ExplainFound(node, *manager, what, choice);
  if (!explained.ok()) {
    const Status none = NoSuchContainer(what, KnownNames(node, *manager, choice));
    const std::string why = WhyNoneIsKnown(node);
    if (why.empty()) return none;
    // Until the runtime's containers were read, there may be such a container.
    return MakeStatus(
        manager->synchronizer().ready() ? StatusCode::kNotFound : StatusCode::kUnavailable,
        fmt::format("{}; no containers are known: {}", Message(none), why));
  }
  AddHeld(*manager, *explained);
  AddProblems(node, *explained);
  return explained;
}

}  // namespace

ExplainMethod::ExplainMethod(const NodeView& node)
    : node_(node),
      memory_(node.loop,
              [cgroups = CgroupReader(node.cgroup_mount)] {
                return [cgroups](const MemorySubject& subject) {
                  return MemoryElsewhere(cgroups, subject);
                };
              },
              {.name = "memory-places", .patience = kLookPatience}),
      claim_files_(
          node.loop,
          [directory = node.cdi_directory] {
            return [directory](const std::string& uid) -> ClaimFile {
              const StatusOr<dra::CdiFile> file = dra::FindCdiFile(directory, uid);
              if (file.ok()) return {.text = file->path, .since = Rfc3339(file->written)};
              return {.text = fmt::format("none in {}: no container can be created", directory)};
            };
          },
          {.name = "claim-files", .patience = kLookPatience}) {}

void ExplainMethod::Answer(const nlohmann::json& request, const UnaryServer::Reply& reply) {
  StatusOr<OrderedJson> explained = ExplainPlaced(node_, request);
  if (!explained.ok()) return reply(explained.status());
  const auto list = std::make_shared<OrderedJson>(*std::move(explained));
  AddMemory(list, [this, list, reply] {
    AddClaimFiles(list, [list, reply] { reply(OrderedJsonText(*list)); });
  });
}

void ExplainMethod::AddMemory(const List& list, std::function<void()> then) {
  BoundContainers bound = BoundIn(*list, node_.host.manager());
  if (bound.subjects.empty()) return then();
  memory_.Do({std::move(bound.subjects),
              [list, then = std::move(then),
               positions = std::move(bound.positions)](const std::vector<std::string>& found) {
                for (size_t i = 0; i < found.size(); ++i)
                  if (!found[i].empty()) (*list)[positions[i]]["memoryElsewhere"] = found[i];
                then();
              }});
}

void ExplainMethod::AddClaimFiles(const List& list, const std::function<void()>& then) {
  std::vector<size_t> positions;
  std::vector<std::string> uids;
  for (size_t i = 0; i < list->size(); ++i) {
    std::string uid = (*list)[i].value("claim", "");
    if (uid.empty()) continue;
    positions.push_back(i);
    uids.push_back(std::move(uid));
  }
  if (uids.empty() || node_.cdi_directory.empty()) return then();
  claim_files_.Do({std::move(uids), [list, then, positions = std::move(positions)](
                                        const std::vector<ClaimFile>& found) {
                     for (size_t i = 0; i < found.size(); ++i) {
                       OrderedJson& claim = (*list)[positions[i]];
                       if (!found[i].text.empty()) claim["cdiFile"] = found[i].text;
                       if (!found[i].since.empty()) claim["since"] = found[i].since;
                     }
                     then();
                   }});
}

}  // namespace resmgr
