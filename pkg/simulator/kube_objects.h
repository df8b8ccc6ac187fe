// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/dra/claim_object.h"
#include "pkg/simulator/manifest.h"

namespace resmgr {

// A ResourceClaim of a scenario. Its allocation is read as the driver reads it
// (dra::ParseClaimObject), when it is prepared.
struct ClaimDocument {
  dra::ClaimName name{};  // if the object has no UID, one from its name
  std::string object{};   // JSON, with this name
};

// Limit of all claims of a scenario's file.
inline constexpr size_t kMaxClaims = 10'000;

// Reads a ResourceClaim (resource.k8s.io) as users write it and as kubectl prints it; without a
// namespace it is in "default". kInvalidArgument "SOURCE:LINE: path: ..." for a missing or invalid
// name or UID, and for a misspelt key.
StatusOr<ClaimDocument> ReadClaim(const ConfigNode& object);

// Whether the document is a Kubernetes object, which has a kind.
bool IsKubeObject(const ConfigNode& document);

struct PodOfObject {
  std::string where{};  // "FILE:LINE" of the object
  Manifest manifest{};
};

struct ClaimOfObject {
  std::string where{};  // "FILE:LINE" of the object
  ClaimDocument claim{};
};

// Limit of all pods of a scenario together, in case a number of replicas is mistyped.
inline constexpr size_t kMaxPods = 10'000;

// Finds the pods in Kubernetes objects, as users write them and as kubectl prints them:
//
//   Pod                      itself, unless its status says that it has ended, or a workload that
//                            owns it was announced: its replicas count
//   Deployment, ReplicaSet,  its replicas: NAME-HASH-0 and on (the hash is of the template). A
//     ReplicationController  ReplicaSet of a Deployment is left out: its owner counts
//   StatefulSet              its replicas: NAME-0 and on, or from spec.ordinals.start
//   DaemonSet                its pod on this node: NAME-HASH
//   Job                      the pods that run at a time: NAME-HASH-0 and on; none if the Job is
//                            suspended or has ended. A Job of a CronJob is left out, as above
//   CronJob                  the pods of one run
//   ResourceClaim            itself, for TakeClaims
//   List, PodList, ...       its items
//
// Other kinds place no container and are counted for Notes. With a node, workloads are left out:
// the Pods tell what runs there.
class KubeObjects {
 public:
  // `node`: reads only Pods that run there (spec.nodeName) and claims that have a device of its
  // pool. Empty: reads all.
  explicit KubeObjects(std::string_view node = {}) : node_(node) {}

  // To be called for all objects before the first is read, since a list has pods before the
  // workloads that own them.
  void Announce(const ConfigNode& object);
  // kInvalidArgument "SOURCE:LINE: path: ...", as from ReadManifest and ReadClaim, or for more than
  // kMaxPods or kMaxClaims.
  Status Read(const ConfigNode& object);
  // The pods of the objects that were read since the last call.
  std::vector<PodOfObject> TakePods();
  // The claims of the objects that were read since the last call.
  std::vector<ClaimOfObject> TakeClaims();
  // A sentence for each kind that was left out.
  std::vector<std::string> Notes() const;

 private:
  void AnnounceKind(const ConfigNode& object, std::string_view kind);
  bool HasAnnouncedOwner(const ConfigNode& pod) const;
  Status ReadKind(const ConfigNode& object, std::string_view kind);
  Status ReadPod(const ConfigNode& object);
  Status ReadClaimObject(const ConfigNode& object);
  Status ReadItems(const ConfigNode& list, std::string_view kind);
  Status ReadWorkload(const ConfigNode& object, std::string_view kind);
  Status AddReplicas(const ConfigNode& object, std::string_view kind, const ConfigNode* spec,
                     const std::string& path);
  Status Add(PodOfObject pod);

  const std::string node_;
  std::vector<PodOfObject> pods_;
  std::vector<ClaimOfObject> claims_;
  size_t count_ = 0;
  size_t claim_count_ = 0;
  size_t elsewhere_ = 0;            // Pods of other nodes, or of none yet
  size_t claims_elsewhere_ = 0;     // claims of other nodes, or of none yet
  size_t workloads_elsewhere_ = 0;  // all workloads, with a node
  size_t ended_ = 0;
  size_t idle_ = 0;                        // workloads that are suspended or have ended
  std::map<std::string, size_t> skipped_;  // by kind
  std::map<std::string, size_t> owned_;    // by kind
  std::set<std::string> announced_;        // "NAMESPACE/KIND/NAME"
};

}  // namespace resmgr
