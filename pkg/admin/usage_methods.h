// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/topology/machine.h"
#include "pkg/usage/usage_figures.h"

namespace resmgr {

struct TopRequest {
  std::string what{};    // "containers" (or ""), "nodes" or "cpus"
  bool wide = false;     // as ContainersUsageJson
  bool unbound = false;  // as CpuMap
};
// Answers with ContainersUsageJson, NodesUsageJson or CpusJson; InvalidArgument for anything else.
// If there is no recent sample, two samples are taken for the answer.
void Top(const NodeView& node, const TopRequest& request, const UnaryServer::Reply& reply);

struct CpusRequest {
  std::string list{};    // "": all of the machine
  bool brief = false;    // without the containers on each
  bool unbound = false;  // as CpuMap
};
// Answers with CpusJson; the CPUs' use is left out if it is not known.
void Cpus(const NodeView& node, const CpusRequest& request, const UnaryServer::Reply& reply);

// A fixed outside contract of `cri-resmgr-ctl top -o json`: a list of
//   {"namespace","pod","container","id","cpus","granted","cpuUsed","throttledPercent",
//    "cpuPressure10","cpuPressure60","memoryBytes","memoryByNode":{},"remotePercent","pool","since"}
// and, only if `wide`, for the table of `-o wide`: "oomKills" of the container so far and
// "memoryHighEvents" since "since". null where the kernel does not tell. "granted" and "cpuUsed"
// are in CPUs, on average since "since" (RFC 3339).
nlohmann::ordered_json ContainersUsageJson(const UsageFigures& figures, bool wide);

// The answer to `top nodes`: a list of
//   {"id","cpus","cpuUsed","memoryBytes","memoryUsed","containerBytes","otherPagesPercent"}
nlohmann::ordered_json NodesUsageJson(const UsageFigures& figures, const Machine& machine);

struct CpuMap {
  const Machine& machine;
  CpuSet offline{};  // since the machine was read
  const ResourceManager* manager = nullptr;
  const UsageFigures* figures = nullptr;
  bool brief = false;    // leaves out "containers", which may be thousands of names
  bool unbound = false;  // adds "unbound"
};
// A fixed outside contract of `cri-resmgr-ctl cpus -o json`, for the CPUs in `chosen`: a list of
//   {"id","state":"exclusive"|"shared"|"reserved"|"isolated"|"unassigned"|"offline",
//    "containers":[],"busyPercent"}
// "containers" are the containers that are bound to CPUs with this one among them, and the claims
// that hold it (as NAMESPACE/CLAIM/claim): of each CPU as many as make 65,536 names for all of the
// chosen CPUs together, and "containersMore" counts the others of the CPU. "busyPercent" is null
// where it is not known. Only if CpuMap says so, for the table: "unbound", the number of running
// containers that are bound to no CPUs and may run on this one, too, where there are some.
nlohmann::ordered_json CpusJson(const CpuMap& map, const CpuSet& chosen);

// Answers `rebalance -by use` with
//   {"moves":[node_json.h],"byUse":ROUND,"last":ROUND or null}, where ROUND is
//   {"time","state","measuredSeconds","containers","lacking","lackingPredicted","lackingMeasured",
//    "note","moves":[{"container","from","to","used","pressure","gain","state","reason"}]}
// "lacking…", "used" and "gain" are CPUs; "lackingMeasured" and "pressure" are null where they are
// not known. "last" is the last round that moved something. Where nothing was sampled lately, the
// answer takes two samples. `most_moves`: nullopt for as many as are configured.
void RebalanceByUse(const NodeView& node, bool apply, std::optional<int> most_moves,
                    const UnaryServer::Reply& reply);

}  // namespace resmgr
