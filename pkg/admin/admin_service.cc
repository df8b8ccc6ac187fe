// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/admin_service.h"

#include <algorithm>
#include <optional>
#include <set>

#include "pkg/admin/history_json.h"
#include "pkg/admin/node_json.h"
#include "pkg/admin/report_json.h"
#include "pkg/admin/stage_json.h"
#include "pkg/admin/uninstall.h"
#include "pkg/admin/usage_methods.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/classes/host_classes.h"
#include "pkg/config/print_config.h"
#include "pkg/log/log.h"
#include "pkg/node/configurator.h"
#include "pkg/node/host_claims.h"
#include "pkg/node/node_problems.h"
#include "pkg/node/policy_setup.h"
#include "pkg/topology/machine.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using Json = nlohmann::json;

// Reads "cpus", "pool" and "node" of the request; any of them may be left out.
Status ChoosePlaces(const Machine& machine, const Json& request, ContainerChoice& choice) {
  RESMGR_ASSIGN_OR_RETURN(const std::string cpus, TextOrNone(request, "cpus"));
  if (!cpus.empty()) {
    RESMGR_ASSIGN_OR_RETURN(choice.cpus, ChosenCpus(machine, cpus));
  }
  RESMGR_ASSIGN_OR_RETURN(choice.pool, TextOrNone(request, "pool"));
  RESMGR_ASSIGN_OR_RETURN(const std::string node, TextOrNone(request, "node"));
  if (node.empty()) return OkStatus();
  RESMGR_ASSIGN_OR_RETURN(const NodeSet id, NodeSet::Parse(node));
  const NumaNode* const found = id.size() == 1 ? machine.FindNode(id.First()) : nullptr;
  if (found == nullptr) return NotFound("the machine has no NUMA node {}", Printable(node, 64));
  choice.node = {.id = found->id, .cpus = found->cpus};
  return OkStatus();
}

// The counts in the answer to Status under the null policy.
OrderedJson SeenCountsJson(const std::vector<SeenContainer>& seen) {
  std::set<std::string_view> pods;
  for (const SeenContainer& one : seen)
    pods.insert(one.pod.id.value());
  return {{"pods", pods.size()}, {"containers", seen.size()}};
}

// Adds the result of the last rebalance by use, if there was one.
void AddLastRound(const NodeView& node, OrderedJson& status) {
  if (node.by_use == nullptr || node.by_use->rounds().empty()) return;
  const UseRound& last = node.by_use->rounds().back();
  status["byUse"] = {
      {"time", Rfc3339(last.time)}, {"state", ToString(last.state)}, {"note", last.note}};
}

// Adds the problems of use that have ended, if any.
void AddEffects(const NodeView& node, OrderedJson& status) {
  if (node.usage == nullptr || node.usage->effects().empty()) return;
  OrderedJson ended = OrderedJson::array();
  for (const UsageProblems::Effect& effect : node.usage->effects()) {
    ended.push_back({{"kind", effect.kind},
                     {"since", Rfc3339(effect.since)},
                     {"ended", Rfc3339(effect.ended)},
                     {"message", effect.message},
                     {"before", effect.before},
                     {"after", effect.after}});
  }
  status["ended"] = std::move(ended);
}

std::string NodeStatus(const NodeView& node, std::chrono::steady_clock::time_point started) {
  if (node.usage != nullptr) node.usage->Touch();
  const auto uptime = std::chrono::steady_clock::now() - started;
  const ResourceManager* const manager = node.host.manager();
  const std::string runtime = node.runtime_state();
  OrderedJson status = {
      {"version", node.version},
      {"policy", node.configurator.current().policy.active},
      {"config", node.configurator.source()},
      {"forced", node.configurator.forced()},
      {"uptimeSeconds", std::chrono::duration_cast<std::chrono::seconds>(uptime).count()},
      {"runtime", runtime},
      {"runtimeSocket", node.runtime_socket},
      {"relaySocket", node.relay_socket},
      {"pods", 0},
      {"containers", 0},
      {"online", (node.machine.online() - node.offline()).ToString()},
      {"offline", (OfflineCpus(node.machine) | node.offline()).ToString()},
  };
  if (const auto other = node.door.other_socket()) {
    status["criSocket"] = other->path;
    status["cri"] = !other->used ? "not used" : other->reachable.ok() ? "reachable" : "unreachable";
  }
  if (manager != nullptr) {
    status.update(HeldJson(*manager));
  } else if (StagesAtWork(node)) {
    status.update(SeenCountsJson(node.door.seen()));
    status["runtime"] = "used without a policy";
  }
  if (const ResourceManager* const releasing = Releasing(node)) {
    if (const size_t bound = CountUnsettled(*releasing); bound > 0) status["stillBound"] = bound;
  }
  if (const std::string why = WhyNoneIsKnown(node); !why.empty()) status["noneKnown"] = why;
  status["state"] = node.state_saved() ? "saved" : "not saved";
  status["dumpLost"] = node.dump_lost();
  status["problems"] = ProblemsJson(ProblemsOf(node));
  AddEffects(node, status);
  AddLastRound(node, status);
  return OrderedJsonText(status);
}

StatusOr<std::string> Policies(const NodeView& node, const Json& /*request*/) {
  OrderedJson list = OrderedJson::array();
  for (const PolicyFactory& factory : node.policies.factories()) {
    list.push_back({{"name", factory.name},
                    {"description", factory.description},
                    {"active", factory.name == node.configurator.current().policy.active}});
  }
  return OrderedJsonText(list);
}

// The null policy has no pools. The answer is then an empty list and no error, since scripts ask
// without knowing which policy is active.
StatusOr<std::string> Pools(const NodeView& node, const Json& /*request*/) {
  const ResourceManager* const manager = node.host.manager();
  if (manager == nullptr) return OrderedJsonText(OrderedJson::array());
  return OrderedJsonText(PoolsJson(manager->policy(), manager->snapshot()));
}

// NotFound if the policy has no such pool.
Status CheckPool(const ResourceManager& manager, const std::string& pool) {
  const std::vector<Zone> zones = manager.policy().Zones(manager.snapshot());
  std::vector<std::string_view> names;
  for (const Zone& zone : zones)
    names.emplace_back(zone.name);
  if (std::ranges::find(names, pool) != names.end()) return OkStatus();
  const std::string hint = DidYouMean(pool, names);
  const std::string there = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  return NotFound("the policy {} has no pool {}{} {}: {}", manager.policy().name(),
                  Printable(pool, 64), hint.empty() ? ";" : hint,
                  hint.empty() ? "there are" : "There are", there);
}

StatusOr<std::string> Containers(const NodeView& node, const Json& request) {
  RESMGR_ASSIGN_OR_RETURN(ContainerChoice choice, ChoiceOf(request));
  RESMGR_RETURN_IF_ERROR(ChoosePlaces(node.machine, request, choice));
  const ResourceManager* const manager = node.host.manager();
  if (manager == nullptr) return OrderedJsonText(OrderedJson::array());
  const WithClaims all(manager->snapshot(), manager->held_claims());
  const OrderedJson list = ContainersJson(all, manager->policy().name(), choice);
  if (list.empty() && !choice.pool.empty())
    RESMGR_RETURN_IF_ERROR(CheckPool(*manager, choice.pool));
  return OrderedJsonText(list);
}

// As a table for people or, without `form`, as JSON.
StatusOr<std::string> Topology(const NodeView& node, const Json& request) {
  const StatusOr<std::string> form = TextOf(request, "form");
  const bool table = form.ok() && *form == "table";
  const CpuSet offline = node.offline();
  return table ? MachineToTable(node.machine, offline) : MachineToJson(node.machine, offline);
}

// All entries that are kept, or the newest ones, as many as the request asks for.
StatusOr<std::string> HistoryText(const NodeView& node, const Json& request) {
  const History& history = node.host.history();
  size_t most = history.capacity();
  if (const auto count = request.find("count"); count != request.end()) {
    if (!count->is_number_unsigned()) {
      return InvalidArgument("the request's \"count\" is not a number of acts");
    }
    most = std::min(most, count->get<size_t>());
  }
  return OrderedJsonText(HistoryJson(history, most));
}

constexpr const char* kCtl = "cri-resmgr-ctl";

StatusOr<Json> ParseRequest(const std::string& message) {
  std::optional<Json> request = ParseJson(message);
  if (!request || !request->is_object()) return InvalidArgument("the request is not a JSON object");
  return *std::move(request);
}

StatusOr<DeliveredConfig> SourceOf(const std::string& message) {
  RESMGR_ASSIGN_OR_RETURN(const Json request, ParseRequest(message));
  DeliveredConfig source;
  RESMGR_ASSIGN_OR_RETURN(source.name, TextOf(request, "name"));
  RESMGR_ASSIGN_OR_RETURN(source.text, TextOf(request, "text"));
  source.name = Printable(source.name, 256);
  return source;
}

void ConfigCheck(const NodeView& node, std::string message, const UnaryServer::Reply& reply) {
  if (const Status size = CheckMessageSize(message); !size.ok()) return reply(size);
  node.configurator.Check(
      kCtl, [message = std::move(message)] { return SourceOf(message); },
      [reply, &node](const StatusOr<Configurator::Preview>& preview) {
        if (!preview.ok()) return reply(preview.status());
        // Under the null policy the containers that the new policy would place are not known.
        const bool known =
            node.host.manager() != nullptr || preview->config.policy.active == kNullPolicy;
        reply(OrderedJsonText({{"policy", preview->config.policy.active},
                               {"warnings", preview->warnings},
                               {"losses", MovesJson(LossesAmong(preview->moves))},
                               {"moves", MovesJson(preview->moves)},
                               {"movesKnown", known}}));
      });
}

void ConfigSet(const NodeView& node, std::string message, Configurator::Losses losses,
               const UnaryServer::Reply& reply) {
  if (const Status size = CheckMessageSize(message); !size.ok()) return reply(size);
  Configurator& configurator = node.configurator;
  configurator.Deliver(
      kCtl, [message = std::move(message)] { return SourceOf(message); },
      [&configurator, reply](const Status& status) {
        if (!status.ok()) return reply(status);
        configurator.WhenStored([&configurator, reply](const Status& stored) {
          OrderedJson answer = {{"policy", configurator.current().policy.active},
                                {"warnings", configurator.warnings()}};
          if (!stored.ok()) answer["notSaved"] = Message(stored);
          reply(OrderedJsonText(answer));
        });
      },
      losses);
}

StatusOr<std::string> Log(const NodeView& /*node*/, const Json& request) {
  RESMGR_ASSIGN_OR_RETURN(const std::string level_name, TextOf(request, "level"));
  RESMGR_ASSIGN_OR_RETURN(const std::string source, TextOf(request, "source"));
  RESMGR_ASSIGN_OR_RETURN(const LogLevel level, ParseLogLevel(level_name));
  const std::vector<std::string> sources = LogSources();
  if (!source.empty() && std::ranges::find(sources, source) == sources.end()) {
    return NotFound("no source of log lines is called {}{}; there are {}", Printable(source, 64),
                    DidYouMean(source, {sources.begin(), sources.end()}), fmt::join(sources, ", "));
  }
  SetLogLevel(level, source);
  return std::string("{}");
}

StatusOr<std::string> Rebalance(const NodeView& node, const Json& request) {
  RESMGR_ASSIGN_OR_RETURN(ResourceManager* const manager, Manager(node));
  const bool really = IsTrue(request, "apply");
  RESMGR_ASSIGN_OR_RETURN(const std::vector<ResourceManager::Move> moves,
                          really ? manager->policy_changes().Rebalance()
                                 : manager->policy_changes().PreviewRebalance());
  return OrderedJsonText({{"moves", MovesJson(moves)}});
}

StatusOr<std::optional<int>> MostMoves(const Json& request) {
  const auto moves = request.find("moves");
  if (moves == request.end()) return std::optional<int>();
  if (moves->is_number_integer() && *moves >= 0 && *moves <= UseRebalancer::kMostMoves)
    return std::optional<int>(moves->get<int>());
  return InvalidArgument("moves is not a number from 0 to {}", UseRebalancer::kMostMoves);
}

void ReleaseClaim(const NodeView& node, const Json& request, const UnaryServer::Reply& reply) {
  const StatusOr<std::string> claim = TextOf(request, "claim");
  if (!claim.ok()) return reply(claim.status());
  if (node.lost_claims == nullptr) return reply(Unimplemented("this node holds no claims"));
  node.lost_claims->Release(
      *claim, IsTrue(request, "force"), [reply](const StatusOr<ClaimGrant>& held) {
        if (!held.ok()) return reply(held.status());
        reply(OrderedJsonText({{"uid", held->uid}, {"cpus", held->All().ToString()}}));
      });
}

void Audit(const NodeView& node, const Json& request, const UnaryServer::Reply& reply) {
  const bool repair = IsTrue(request, "repair");
  node.auditor.Run(repair, [&node, repair, reply](const StatusOr<AuditReport>& report) {
    if (!report.ok()) return reply(report.status());
    OrderedJson answer = AuditJson(*report);
    if (node.classes == nullptr) return reply(OrderedJsonText(answer));
    node.classes->Audit(repair, [answer, reply](const auto& audited) mutable {
      AddFiles(audited, answer);
      reply(OrderedJsonText(answer));
    });
  });
}

// The number of the dump; 0 if the request has none.
uint64_t TraceOf(const Json& request) {
  const auto trace = request.find("trace");
  return trace != request.end() && trace->is_number_unsigned() ? trace->get<uint64_t>() : 0;
}

void ReplyJson(const StatusOr<OrderedJson>& answer, const UnaryServer::Reply& reply) {
  answer.ok() ? reply(OrderedJsonText(*answer)) : reply(answer.status());
}

using Handler = std::function<void(const Json& request, const UnaryServer::Reply& reply)>;

UnaryServer::Method Decoded(Handler handler) {
  return
      [handler = std::move(handler)](const std::string& message, const UnaryServer::Reply& reply) {
        const StatusOr<Json> request = ParseRequest(message);
        request.ok() ? handler(*request, reply) : reply(request.status());
      };
}

// Adds methods by their names.
auto AdderTo(UnaryServer::Methods& methods) {
  return [&methods](std::string_view name, Handler handler) {
    methods.emplace(fmt::format("/cri_resmgr.v1.Admin/{}", name), Decoded(std::move(handler)));
  };
}

// Gives no list before the first look at the runtime, since it would wrongly be empty.
void Classes(const NodeView& node, const UnaryServer::Reply& reply) {
  HostClasses* const classes = node.classes;
  const auto answer = [classes, reply] {
    if (classes->known()) return reply(OrderedJsonText(ClassesJson(classes->report())));
    reply(
        Unavailable("it is not known yet which classes are in use: the daemon has not seen the "
                    "runtime's containers since it started"));
  };
  if (classes == nullptr) return reply(OrderedJsonText(OrderedJson::array()));
  const ResourceManager* const manager = node.host.manager();
  if (classes->known() || (manager != nullptr && !manager->synchronizer().ready())) return answer();
  // The audit ends after work on classes that is under way.
  classes->Audit(false, [answer, reply](const auto& audited) {
    audited.ok() ? answer() : reply(audited.status());
  });
}

}  // namespace

// A configuration of a megabyte takes some 20 ms to print. Calls that come during a print wait for
// the next one, which answers all of them, so that the work does not grow with their number.
void AdminService::ConfigShow(UnaryServer::Reply reply) {
  want_config_.push_back(std::move(reply));
  if (!printing_) PrintForWaiting();
}

void AdminService::PrintForWaiting() {
  printing_ = !want_config_.empty();
  if (!printing_) return;
  auto asked = std::make_shared<std::vector<UnaryServer::Reply>>(std::exchange(want_config_, {}));
  const Status begun = printer_.Run([this, asked, config = node_.configurator.shared_current(),
                                     source = node_.configurator.source(),
                                     policies = node_.policies]() -> EventLoop::Task {
    const auto text = std::make_shared<const std::string>(OrderedJsonText(
        {{"source", source}, {"yaml", PrintConfig(WithDefaults(*config, policies))}}));
    return [this, asked, text] {
      for (const UnaryServer::Reply& reply : *asked)
        reply(*text);
      PrintForWaiting();
    };
  });
  if (begun.ok()) return;
  printing_ = false;
  for (const UnaryServer::Reply& reply : *asked)
    reply(begun);
}

void AdminService::AddAnswers(UnaryServer::Methods& methods) {
  const NodeView& node = node_;
  const auto add = AdderTo(methods);
  for (const auto& [name, answer] :
       {std::pair("Policies", &Policies), std::pair("Topology", &Topology),
        std::pair("Pools", &Pools), std::pair("Containers", &Containers),
        std::pair("History", &HistoryText), std::pair("Log", &Log),
        std::pair("Rebalance", &Rebalance)}) {
    add(name, [&node, answer = answer](const Json& request, const auto& reply) {
      reply(answer(node, request));
    });
  }
  add("Status", [this](const Json&, const auto& reply) { reply(NodeStatus(node_, started_)); });
  add("Plugins", [&node](const Json&, const auto& reply) {
    reply(OrderedJsonText(PluginsJson(node.door.plugins())));
  });
  add("Runtimes", [&node](const Json&, const auto& reply) {
    node.door.DescribeRuntimes([reply](const std::vector<RuntimeView>& runtimes) {
      reply(OrderedJsonText(RuntimesJson(runtimes)));
    });
  });
  add("Explain",
      [this](const Json& request, const auto& reply) { explain_.Answer(request, reply); });
  add("ConfigShow", [this](const Json&, const auto& reply) { ConfigShow(reply); });
  add("Top", [&node](const Json& request, const auto& reply) {
    const StatusOr<std::string> what = TextOrNone(request, "what");
    if (!what.ok()) return reply(what.status());
    Top(node,
        {.what = *what, .wide = IsTrue(request, "wide"), .unbound = IsTrue(request, "unbound")},
        reply);
  });
  add("Cpus", [&node](const Json& request, const auto& reply) {
    const StatusOr<std::string> list = TextOrNone(request, "cpus");
    if (!list.ok()) return reply(list.status());
    Cpus(node,
         {.list = *list, .brief = IsTrue(request, "brief"), .unbound = IsTrue(request, "unbound")},
         reply);
  });
  add("Classes", [&node](const Json&, const auto& reply) { Classes(node, reply); });
  add("LogSources",
      [](const Json&, const auto& reply) { reply(OrderedJsonText(OrderedJson(LogSources()))); });
}

void AdminService::AddChanges(UnaryServer::Methods& methods) {
  const NodeView& node = node_;
  const auto add = AdderTo(methods);
  // These requests may be long, so they are decoded off the event loop.
  methods.emplace("/cri_resmgr.v1.Admin/ConfigCheck",
                  [&node](std::string message, const UnaryServer::Reply& reply) {
                    ConfigCheck(node, std::move(message), reply);
                  });
  using enum Configurator::Losses;
  for (const auto& [method, losses] :
       {std::pair("ConfigSet", kRefuse), std::pair("ConfigForce", kTake)}) {
    methods.emplace(fmt::format("/cri_resmgr.v1.Admin/{}", method),
                    [&node, losses = losses](std::string message, const UnaryServer::Reply& reply) {
                      ConfigSet(node, std::move(message), losses, reply);
                    });
  }
  add("Audit", [&node](const Json& request, const auto& reply) { Audit(node, request, reply); });
  add("Uninstall", [&node](const Json& request, const auto& reply) {
    Uninstall(node, IsTrue(request, "apply"), reply);
  });
  add("ReleaseClaim",
      [&node](const Json& request, const auto& reply) { ReleaseClaim(node, request, reply); });
  add("RebalanceByUse", [&node](const Json& request, const auto& reply) {
    const StatusOr<std::optional<int>> moves = MostMoves(request);
    if (!moves.ok()) return reply(moves.status());
    RebalanceByUse(node, IsTrue(request, "apply"), *moves, reply);
  });
}

void AdminService::AddDumps(UnaryServer::Methods& methods) {
  const auto add = AdderTo(methods);
  add("DumpPod", [this](const Json& request, const auto& reply) {
    const auto seconds = request.find("seconds");
    const StatusOr<std::string> pod = TextOf(request, "pod");
    if (!pod.ok()) return reply(pod.status());
    if (seconds == request.end() || !seconds->is_number_unsigned())
      return reply(InvalidArgument("the request has no number \"seconds\""));
    const auto most = static_cast<uint64_t>(PodDump::kLongest.count()) + 1;
    const auto wanted = std::min(seconds->template get<uint64_t>(), most);
    ReplyJson(pod_dump_.Begin(*pod, std::chrono::seconds(wanted)), reply);
  });
  add("DumpPodNext", [this](const Json& request, const auto& reply) {
    ReplyJson(pod_dump_.Next(TraceOf(request)), reply);
  });
  add("DumpPodStop", [this](const Json& request, const auto& reply) {
    pod_dump_.Stop(TraceOf(request));
    reply(std::string("{}"));
  });
}

// `Status` does not wait, since it reports whether the runtime is there.
void AdminService::WaitForFirstLook(UnaryServer::Methods& methods) {
  for (const char* const name :
       {"Pools", "Containers", "Explain", "Top", "Cpus", "Classes", "ConfigCheck", "ConfigSet",
        "Rebalance", "RebalanceByUse", "ReleaseClaim", "Audit", "Uninstall"}) {
    UnaryServer::Method& method = methods.at(fmt::format("/cri_resmgr.v1.Admin/{}", name));
    method = [this, then = std::move(method)](std::string message, UnaryServer::Reply reply) {
      first_look_.Then(
          [then, message = std::move(message), reply = std::move(reply)] { then(message, reply); });
    };
  }
}

UnaryServer::Methods AdminService::Methods() {
  UnaryServer::Methods methods;
  AddAnswers(methods);
  AddChanges(methods);
  AddDumps(methods);
  WaitForFirstLook(methods);
  return methods;
}

UnaryServer::Methods AdminMethods(const NodeView& node) {
  const auto service = std::make_shared<AdminService>(node);
  UnaryServer::Methods methods = service->Methods();
  for (auto& [path, method] : methods) {
    method = [service, method = std::move(method)](std::string message, UnaryServer::Reply reply) {
      method(std::move(message), std::move(reply));
    };
  }
  return methods;
}

}  // namespace resmgr
