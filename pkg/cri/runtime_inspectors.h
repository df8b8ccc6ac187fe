// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "pkg/cri/backends.h"
#include "pkg/cri/runtime_connection.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr {

// Several runtimes as one for the stages: asks the runtime that has the id or, if that is unknown,
// one runtime after the other, also if some do not answer. Loop's thread only.
class RuntimeInspectors final : public RuntimeAccess {
 public:
  // All of these must outlive this object.
  RuntimeInspectors(EventLoop& loop, h2::FlushQueue& flushes, Backends& backends);

  // Returns the first answer, the default runtime's if it answers. The handlers are left out if
  // there are several runtimes.
  void AskVersion(Done<Version> done) override;
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override;
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override;
  void InspectImage(const PodSandboxId& pod, std::string_view reference,
                    Done<ImageFacts> done) override;
  // Returns the objects of all runtimes except those that are away, hang, or are a second slower
  // than the others; stages ask again when these are back. Fails if no runtime is left, or if one
  // fails otherwise. If two runtimes have the same id, the entry of the runtime that had it later
  // is left out.
  void InspectAll(Done<Everything> done) override;

  void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                       std::function<void(Status)> done) override;
  void StopContainer(const ContainerId& id, std::chrono::seconds grace,
                     std::function<void(Status)> done) override;
  void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;
  void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;

 private:
  struct Collection;

  static constexpr std::chrono::milliseconds kGrace{1'000};

  void Take(const std::shared_ptr<Collection>& all, size_t runtime, StatusOr<Everything> its);
  void End(Collection& all);
  void Learn(size_t runtime, const Everything& its, IdOwners::ListBegin begin);

  // The runtimes to ask for this id, in order.
  std::vector<RuntimeAccess*> Candidates(IdOwners::Kind kind, std::string_view id) const;
  // Those that hang come last.
  std::vector<RuntimeAccess*> All() const;

  EventLoop& loop_;
  Backends& backends_;
  std::vector<std::unique_ptr<RuntimeConnection>> inspectors_;
};

}  // namespace resmgr
