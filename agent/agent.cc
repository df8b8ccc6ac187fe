// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <utility>

#include <fmt/format.h>

#include "pkg/base/parse.h"

namespace resmgr::agent {
namespace {

KeyRules Rules(const AgentOptions& options) {
  KeyRules rules{.domains = options.allowed_domains, .reserved = {}};
  // The group decides about the node's configuration, so it is the administrators'.
  rules.reserved.insert(options.group_label);
  rules.reserved.insert(kStatusAnnotations.begin(), kStatusAnnotations.end());
  return rules;
}

}  // namespace

Agent::Agent(const AgentOptions& options, HttpTransport& transport, Timers& timers,
             ConfigClient& client)
    : reporter_(transport, timers, options.node, NodeMapName(options.map_name, options.node),
                options.report, options.retry.seed),
      pusher_(client, timers, options.push_backoff, options.retry.seed,
              [this](const Verdict& verdict) { reporter_.Report(verdict); }),
      source_(
          transport, timers,
          {.node = options.node,
           .map_namespace = options.map_namespace,
           .map_name = options.map_name,
           .group_label = options.group_label,
           .retry = options.retry},
          [this](const std::optional<ConfigMap>& map) { pusher_.Set(map); },
          [this](const Json& node) { reporter_.NodeSeen(node); }),
      access_(transport, options.node, Rules(options)) {}

void Agent::GetNode(TextDone done) {
  access_.Get(std::move(done));
}

void Agent::PatchNode(std::vector<PatchOperation> operations, Done done) {
  access_.Patch(std::move(operations), done);
}

void Agent::UpdateNodeCapacity(std::map<std::string, std::string> capacities, Done done) {
  access_.SetCapacity(capacities, done);
}

void Agent::HealthCheck(std::string query, TextDone done) {
  if (query == kAliveQuery) return done("");
  if (query == kConfigQuery) return done(Complaint(pusher_.verdict()));
  done(fmt::format("unknown query \"{}\"", Printable(query)));
}

}  // namespace resmgr::agent
