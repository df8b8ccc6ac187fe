// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/status.h"
#include "pkg/hooks/hook_messages.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/model/adjustment.h"

namespace resmgr::hooks {

namespace api = ::runtime::v1alpha1;

// The changes that the hook servers of one call make. A server may clear the list of CPUs, for a
// container that is not to be bound. `adjustment` cannot express this, since a policy never does
// it.
struct HookChanges {
  Adjustment adjustment{};
  bool clears_cpus = false;
  bool clears_mems = false;

  bool empty() const { return adjustment.empty() && !clears_cpus && !clears_mems; }
};

// Two servers want different values of one field; the later one wins.
struct HookConflict {
  FieldChange change;
  std::string former;  // the servers' files
  std::string later;
};

// The server that changed each field last, and the servers' conflicts.
class HookOwners {
 public:
  void Note(Field field, std::string_view key, const std::string& server);
  void Forget(Field field, std::string_view key);
  // "": no server changed it.
  std::string Of(const FieldChange& change) const;
  const std::vector<HookConflict>& conflicts() const { return conflicts_; }

 private:
  std::map<std::pair<Field, std::string>, std::string> owners_;
  std::vector<HookConflict> conflicts_;
};

// The part of the system that decides about the container's CPUs and memory nodes.
enum class PlacementOwner {
  kServers,
  // The servers' values are among the changes, so that the pipeline counts and drops them, but
  // neither the next server nor the store gets them.
  kPolicy,
};

// The parts of a request to a server that are stored beside the message.
struct BesideRequest {
  std::string pod{};              // see EncodedPodPart
  HookEnvironment environment{};  // variables that are not in the message
};

// Merges the answers of several servers to one hook, in the order in which they are asked. A value
// that equals the one sent to the server is no change. Otherwise, field by field:
//
//   cpu_period, cpu_shares, memory_limit, memory_swap_limit
//                            0 and less is no change: runtimes refuse a negative limit of memory
//   cpu_quota                0 is no change; -1 lifts it
//   oom_score_adj            echo: also 0 counts; beyond -1000 to 1000 is no change
//   cpuset_cpus, cpuset_mems echo: empty clears; sparse: empty is no change
//   hugepage_limits, unified, labels, annotations
//                            entry by entry; missing entries stay. A file in unified with the
//                            meaning of a number is removed if a later server changes the number
//   cgroup parent            empty is no change
//   envs                     entry by entry; echo: a variable that is missing in an answer with
//                            some is removed; none at all is no change
//
// An answer without resources changes none. Resources in the answer of a pod sandbox's hook count
// if the request that creates the sandbox has a place for them (Docker); for them all answers are
// sparse. A value type that can only be moved.
class ContainerHookMerge {
 public:
  // Only PreCreateContainer and PreUpdateContainerResources change anything. An update has no place
  // for environment variables and the cgroup parent: these parts of answers are ignored.
  ContainerHookMerge(HookPoint point, api::ContainerResourceHookRequest request,
                     PlacementOwner owner = PlacementOwner::kServers, BesideRequest beside = {})
      : point_(point), request_(std::move(request)), owner_(owner), beside_(std::move(beside)) {}

  const api::ContainerResourceHookRequest& request() const { return request_; }
  // The complete request for the next server.
  std::string Encoded() const;
  // Calls the function of this name in hook_messages.h.
  std::optional<std::string> WithoutRepeatedEnvironment(std::string_view answer) const;
  // Called last.
  api::ContainerResourceHookRequest TakeRequest() { return std::move(request_); }
  const HookEnvironment& environment() const { return beside_.environment; }
  // kInvalidArgument: a malformed list of CPUs or memory nodes, or an invalid name of an
  // environment variable; nothing of the answer is taken.
  Status Add(const std::string& server, AnswerStyle style,
             const api::ContainerResourceHookResponse& answer);
  const HookChanges& changes() const { return changes_; }
  HookChanges TakeChanges() { return std::move(changes_); }
  const HookOwners& owners() const { return owners_; }

 private:
  void MoveEnvironmentIntoRequest();
  Status Check(const api::ContainerResourceHookResponse& answer) const;
  void AddResources(const std::string& server, AnswerStyle style,
                    const api::LinuxContainerResources& answer);
  void AddSets(const std::string& server, AnswerStyle style,
               const api::LinuxContainerResources& answer);
  void RemoveFilesOf(Field field, const std::string& server);
  void AddFiles(const std::string& server, const api::LinuxContainerResources& answer);
  void AddHugepages(const std::string& server, const api::LinuxContainerResources& answer);
  void AddEnvironment(const std::string& server, AnswerStyle style,
                      const api::ContainerResourceHookResponse& answer);

  HookPoint point_;
  api::ContainerResourceHookRequest request_;
  PlacementOwner owner_;
  BesideRequest beside_;
  HookChanges changes_;
  HookOwners owners_;
};

// Whether changes of a pod sandbox's resources are taken; they become the pause container's, as in
// koord-runtime-proxy.
enum class PodResources { kPassedOver, kTaken };

class PodHookMerge {
 public:
  explicit PodHookMerge(api::PodSandboxHookRequest request,
                        PodResources resources = PodResources::kPassedOver);

  // The request for the next server; it includes the former servers' changes.
  const api::PodSandboxHookRequest& request() const { return request_; }
  std::string Encoded() const { return request_.SerializeAsString(); }
  // kInvalidArgument: see ContainerHookMerge::Add.
  Status Add(const std::string& server, const api::PodSandboxHookResponse& answer);
  // Returns the changes, except those of resources.
  const HookChanges& changes() const { return changes_; }
  // Returns all changes; called last.
  HookChanges TakeChanges();
  const HookOwners& owners() const { return owners_; }

 private:
  Status AddResources(const std::string& server, const api::LinuxContainerResources& answer);

  api::PodSandboxHookRequest request_;
  HookChanges changes_;
  HookOwners owners_;
  std::optional<ContainerHookMerge> resources_;  // set if resources are taken
};

}  // namespace resmgr::hooks
