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
// type that can only be moved.
class HookMerge {
 public:
  HookMerge(HookMerge&&) = default;
  HookMerge& operator=(HookMerge&&) = default;
  virtual ~HookMerge() = default;

  // The complete request for the next server; it includes the former servers' changes.
  virtual std::string Encoded() const = 0;
  // Takes an encoded answer. kInternal: it is malformed; kInvalidArgument: see Add.
  virtual Status Take(const HookServerSettings& server, const std::string& answer) = 0;
  // Returns all changes; called last.
  virtual Adjustment TakeChanges() { return std::move(changes_); }
  const Adjustment& changes() const { return changes_; }
  const HookOwners& owners() const { return owners_; }

 protected:
  // An answer whose changes are being taken, by its server.
  struct Answer {
    const std::string& server;
    AnswerStyle style;
    HookOwners& owners;

    void Note(Field field, std::string_view key = {}) const { owners.Note(field, key, server); }
  };

  HookMerge() = default;
  // `dropped` selects keys that the pipeline counts and drops: they are added to the changes, but
  // the next server does not see them.
  void AddMap(const Answer& from, Field field, const HookMap& answer, HookMap& sent,
              KeyedEdits<std::string> WideAdjustment::*edits,
              bool (*dropped)(std::string_view key));
  void AddCgroupParent(const Answer& from, const std::string& answer, std::string& sent);

  Adjustment changes_;
  HookOwners owners_;
};

// The merge of hooks about a container. A value that equals the one sent to the server is not a
// change. Otherwise, field by field:
//
//   cpu_period, cpu_shares, memory_limit, memory_swap_limit
//                            0 and less: unchanged (runtimes refuse negative limits of memory)
//   cpu_quota                0: unchanged; -1 lifts it
//   oom_score_adj            echo: also 0 counts; beyond -1000 to 1000: unchanged
//   cpuset_cpus, cpuset_mems echo: empty clears; sparse: empty leaves it
//   hugepage_limits, unified, labels, annotations
//                            entry by entry; missing entries stay. A file in unified with the
//                            meaning of a number is removed if a later server changes the number
//   cgroup parent            empty: unchanged
//   envs                     entry by entry; echo: a variable that is missing in an answer with
//                            some is removed; none at all: unchanged
//
// An answer without resources changes none. Resources in the answer of a pod sandbox's hook count
// if the request that creates the sandbox has a place for them (Docker); for them all answers are
// sparse.
class ContainerHookMerge final : public HookMerge {
 public:
  // Only PreCreateContainer and PreUpdateContainerResources change anything. An update has no place
  // for environment variables and the cgroup parent: these parts of answers are ignored.
  ContainerHookMerge(HookPoint point, api::ContainerResourceHookRequest request,
                     PlacementOwner owner = PlacementOwner::kServers, BesideRequest beside = {})
      : point_(point), request_(std::move(request)), owner_(owner), beside_(std::move(beside)) {}

  const api::ContainerResourceHookRequest& request() const { return request_; }
  std::string Encoded() const override;
  // Calls the function of this name in hook_messages.h.
  std::optional<std::string> WithoutRepeatedEnvironment(std::string_view answer) const;
  // Called last.
  api::ContainerResourceHookRequest TakeRequest() { return std::move(request_); }
  const HookEnvironment& environment() const { return beside_.environment; }
  // kInvalidArgument: a malformed list of CPUs or memory nodes, or an invalid name of an
  // environment variable; nothing of the answer is taken.
  Status Add(const std::string& server, AnswerStyle style,
             const api::ContainerResourceHookResponse& answer);
  Status Take(const HookServerSettings& server, const std::string& answer) override;

 private:
  void MoveEnvironmentIntoRequest();
  Status Check(const api::ContainerResourceHookResponse& answer) const;
  void AddResources(const Answer& from, const api::LinuxContainerResources& answer);
  void AddSets(const Answer& from, const api::LinuxContainerResources& answer);
  void RemoveFilesOf(Field field, const std::string& server);
  void AddHugepages(const Answer& from, const api::LinuxContainerResources& answer);
  void AddEnvironment(const Answer& from, const HookMap& answer);

  HookPoint point_;
  api::ContainerResourceHookRequest request_;
  PlacementOwner owner_;
  BesideRequest beside_;
};

// Whether changes of a pod sandbox's resources are taken; they become the pause container's, as in
// koord-runtime-proxy.
enum class PodResources { kPassedOver, kTaken };

class PodHookMerge final : public HookMerge {
 public:
  explicit PodHookMerge(api::PodSandboxHookRequest request,
                        PodResources resources = PodResources::kPassedOver);

  const api::PodSandboxHookRequest& request() const { return request_; }
  std::string Encoded() const override { return request_.SerializeAsString(); }
  // kInvalidArgument: see ContainerHookMerge::Add.
  Status Add(const std::string& server, const api::PodSandboxHookResponse& answer);
  Status Take(const HookServerSettings& server, const std::string& answer) override;
  Adjustment TakeChanges() override;

 private:
  Status AddResources(const std::string& server, const api::LinuxContainerResources& answer);

  api::PodSandboxHookRequest request_;
  // Set if resources are taken; has their changes until TakeChanges.
  std::optional<ContainerHookMerge> resources_;
};

}  // namespace resmgr::hooks
