// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

// One list of everything that a runtime has, by any protocol: first the listed objects, then the
// verbose status of those that are not known. Its callbacks keep it alive. Loop's thread only.
class RuntimeListing : public std::enable_shared_from_this<RuntimeListing> {
 public:
  template <typename Value>
  using Done = std::function<void(StatusOr<Value>)>;

  struct Objects {
    std::vector<SandboxFacts> sandboxes;
    std::vector<ContainerFacts> containers;
  };
  // Objects in the order of the list; if a status is missing, the object has only what the list
  // says.
  struct Result : Objects {
    RuntimeInventory::Unclear unclear;
    RuntimeInventory::Brief brief;
    // Objects that disappeared after the list.
    std::set<PodSandboxId> gone_pods;
    std::set<ContainerId> gone_containers;

    // The result as the resource manager takes it, with the objects that disappeared.
    RuntimeInventory ToInventory() &&;
    // The result as stages take it, without the objects that disappeared.
    RuntimeAccess::Everything ToEverything() &&;
  };

  // The calls of a protocol. Each answers once, and never inside the call.
  struct Questions {
    std::function<void(Done<Objects>)> list;
    // Adds the status of an object to its listed facts. kNotFound: the object has disappeared.
    template <typename Facts>
    using AddStatus = std::function<void(Facts& listed, std::function<void(const Status&)> done)>;
    AddStatus<SandboxFacts> sandbox;
    AddStatus<ContainerFacts> container;
    // Whether kUnavailable for one status means that the connection is lost, so that the whole list
    // fails.
    bool unavailable_is_loss = false;
  };

  static void Start(Questions questions, Known known, Done<Result> done);

 private:
  RuntimeListing(Questions questions, Known known, Done<Result> done)
      : questions_(std::move(questions)), known_(std::move(known)), done_(std::move(done)) {}

  void Take(StatusOr<Objects> listed);
  template <typename Facts, typename RuntimeId>
  void Plan(const Questions::AddStatus<Facts>& question, Facts& facts, const RuntimeId& id,
            std::set<RuntimeId>& unclear, std::set<RuntimeId>& gone);
  void AskNext();
  void OnAnswer(const Status& status);

  const Questions questions_;
  const Known known_;
  Done<Result> done_;  // called at the end
  Result result_;
  std::vector<std::function<void()>> asks_;  // one for each status
  size_t next_ = 0;
  size_t left_ = 0;
};

}  // namespace resmgr
