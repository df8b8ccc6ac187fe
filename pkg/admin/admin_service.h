// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "pkg/admin/explain_method.h"
#include "pkg/admin/method_parts.h"
#include "pkg/admin/pod_dump.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/node/node_view.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Serves cri-resmgr-ctl on -admin-socket. Requests and replies are JSON in gRPC messages; each
// method is "/cri_resmgr.v1.Admin/NAME":
//
//   Status       {}                         -> {"version","policy","config","forced",
//       "uptimeSeconds","runtime","runtimeSocket","relaySocket","pods","containers","online",
//       "offline", as an NRI plugin "criSocket" and "cri" ("not used", "reachable", "unreachable"),
//       HeldJson's members (node_json.h) except under the null policy, "state" ("saved" or "not
//       saved"), "dumpLost" (calls that the dump lacks), "problems" (report_json.h); and where
//       there are some "noneKnown" (why no containers are known, method_parts.h), "stillBound"
//       (under the null policy: containers that are not released yet), "ended" (problems of use
//       that have ended: "kind","since","ended","message","before","after") and "byUse" (the last
//       rebalance by use: "time","state","note")}
//   Policies     {}                         -> [{"name","description","active"}]
//   Topology     {"form": "table"|"json"}   -> the text of machine_source.h
//   Pools        {}                         -> [node_json.h]
//   Plugins      {}                         -> [stage_json.h]
//   Runtimes     {}                         -> [stage_json.h]
//   Containers   {"namespace","selector","cpus","pool","node"} -> [node_json.h]; all may be left
//       out; NotFound for an unknown CPU, pool or node
//   Explain      {"what","namespace","selector"} -> [node_json.h, stage_json.h, history_json.h;
//       and where there are some, texts: "cpuFile" (why it has none), "audit", "advice", "byUse"
//       (how a rebalance moved it), "memoryElsewhere", "classesIgnored", of a claim "cdiFile" (its
//       path, or that there is none) and "since" (when that was written); "classes"
//       (report_json.h), "held" (HeldByPoolJson), and "problems", those of the container and of
//       its pod]
//   History      {"count"}                  -> [history_json.h]
//   ConfigShow   {}                         -> {"source","yaml"}
//   ConfigCheck  {"name","text"}            ->
//       {"policy","warnings":[],"losses":[],"moves":[node_json.h],"movesKnown"}, where losses are
//       the moves that cost exclusive CPUs; "movesKnown" is false while the null policy knows no
//       containers
//   ConfigSet    {"name","text"}            -> {"policy","warnings":[], and "notSaved", if it is in
//       force and cannot be kept for restarts: why}; refused for losses
//   ConfigForce  {"name","text"}            -> the same; not refused for losses
//   DumpPod      {"pod","seconds"}          -> {"trace"}
//   DumpPodNext  {"trace"}                  -> [pod_dump.h]
//   DumpPodStop  {"trace"}                  -> {}
//   Log          {"level","source"}         -> {}; NotFound for an unknown source
//   LogSources   {}                         -> ["SOURCE"]
//   Rebalance    {"apply"}                  -> {"moves":[node_json.h]}
//   RebalanceByUse {"apply","moves"}        -> {"moves":[node_json.h], and usage_methods.h}
//   Audit        {"repair"}                 -> [report_json.h]
//   ReleaseClaim {"claim","force"}          -> {"uid","cpus"}; what it held (host_claims.h)
//   Uninstall    {"apply"}                  -> [uninstall.h]
//   Top          {"what","wide","unbound"}  -> [usage_methods.h]; "containers", "nodes" or "cpus"
//   Cpus         {"cpus","brief","unbound"} -> [usage_methods.h]; a list, or all; brief: without
//       the containers on each; unbound: as CpuMap
//   Classes      {}                         -> [report_json.h]
//
// Questions about containers, and configurations that must not take exclusive CPUs away, wait until
// a daemon that starts has looked at the runtime (FirstLook).
//
// Nothing in a reply is secret: no environment, label or annotation of a pod is part of it.
class AdminService {
 public:
  explicit AdminService(NodeView node)
      : node_(std::move(node)),
        started_(std::chrono::steady_clock::now()),
        printer_(node_.loop, "config-show", std::chrono::milliseconds(100)) {}

  // This object must outlive the server.
  UnaryServer::Methods Methods();

 private:
  void ConfigShow(UnaryServer::Reply reply);
  void PrintForWaiting();
  void AddAnswers(UnaryServer::Methods& methods);
  void AddChanges(UnaryServer::Methods& methods);
  void AddDumps(UnaryServer::Methods& methods);
  void WaitForFirstLook(UnaryServer::Methods& methods);

  NodeView node_;
  std::chrono::steady_clock::time_point started_;
  FirstLook first_look_{node_};
  ExplainMethod explain_{node_};
  PodDump pod_dump_{node_};
  std::vector<UnaryServer::Reply> want_config_;  // calls that the next print answers
  bool printing_ = false;
  OffLoop printer_;
};

// The methods of an AdminService. The methods own that object.
UnaryServer::Methods AdminMethods(const NodeView& node);

}  // namespace resmgr
