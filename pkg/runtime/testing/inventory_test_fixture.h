// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/pipeline/runtime_access.h"
#include "pkg/runtime/inventory.h"
#include "pkg/runtime/typed_view.h"
#include "pkg/sys/clock.h"

namespace resmgr::test {

// A request of this operation about one id.
class TestRequest final : private Request::Source, public Request {
 public:
  TestRequest(Operation operation, const std::string& id) : Request(operation, *this) {
    container_id = ContainerId(id);
    pod_id = PodSandboxId(id);
  }

 private:
  bool ReadCreate(CreateRequest&) override { return false; }
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet, ContainerDetails&) override { return false; }
};

// A runtime whose objects the test sets. It answers when the test lets it.
class ListedRuntime final : public RuntimeAccess {
 public:
  Status failure;                     // of all questions
  std::vector<std::string> unlisted;  // of the next lists

  void HavePod(const std::string& id, bool ready = true) { pods_[id] = ready; }
  void HaveContainer(const std::string& id, const std::string& pod,
                     ContainerState state = ContainerState::kRunning) {
    containers_[id] = {pod, state};
  }
  void RemovePod(const std::string& id) {
    pods_.erase(id);
    std::erase_if(containers_, [&](const auto& entry) { return entry.second.pod == id; });
  }
  void RemoveContainer(const std::string& id) { containers_.erase(id); }
  std::vector<std::string> All() const {
    std::vector<std::string> all;
    for (const auto& [id, ready] : pods_)
      all.push_back(id);
    for (const auto& [id, container] : containers_)
      if (pods_.contains(container.pod)) all.push_back(id);
    return all;
  }

  // Everything that the runtime has.
  Everything Now() const {
    Everything everything{.sandboxes = {}, .containers = {}, .unlisted = unlisted};
    for (const auto& [id, ready] : pods_)
      everything.sandboxes.push_back(PodFacts(id));
    for (const auto& [id, container] : containers_)
      everything.containers.push_back(FactsOf(id));
    return everything;
  }

  // Lists and other questions that are not answered yet.
  size_t lists() const { return lists_.size(); }
  size_t questions() const { return questions_.size(); }
  // The list under way will be answered with the runtime's present objects.
  void FreezeList() {
    if (!lists_.empty()) frozen_ = Now();
  }
  void AnswerList() {
    if (lists_.empty()) return;
    const Done<Everything> done = std::move(lists_.front());
    lists_.erase(lists_.begin());
    const std::optional<Everything> frozen = std::exchange(frozen_, std::nullopt);
    if (!failure.ok()) return done(failure);
    done(frozen ? *frozen : Now());
  }
  void AnswerQuestion() {
    if (questions_.empty()) return;
    const auto answer = std::move(questions_.front());
    questions_.erase(questions_.begin());
    answer();
  }

  void AskVersion(Done<Version>) override {}
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override {
    questions_.emplace_back([this, id = std::string(id.value()), done = std::move(done)] {
      if (!failure.ok()) return done(failure);
      if (!pods_.contains(id)) return done(NotFound("no sandbox {}", id));
      done(PodFacts(id));
    });
  }
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override {
    questions_.emplace_back([this, id = std::string(id.value()), done = std::move(done)] {
      if (!failure.ok()) return done(failure);
      if (!containers_.contains(id)) return done(NotFound("no container {}", id));
      done(FactsOf(id));
    });
  }
  void InspectImage(const PodSandboxId&, std::string_view, Done<ImageFacts>) override {}
  void InspectAll(Done<Everything> done) override { lists_.push_back(std::move(done)); }
  void UpdateContainer(const ContainerId&, const ResourceChange&,
                       std::function<void(Status)>) override {}
  void StopContainer(const ContainerId&, std::chrono::seconds,
                     std::function<void(Status)>) override {}
  void StopSandbox(const PodSandboxId&, std::function<void(Status)>) override {}
  void RemoveSandbox(const PodSandboxId&, std::function<void(Status)>) override {}

 private:
  struct Held {
    std::string pod;
    ContainerState state;
  };

  SandboxFacts PodFacts(const std::string& id) const {
    SandboxFacts facts;
    facts.pod.id = PodSandboxId(id);
    facts.pod.name = id;
    facts.ready = pods_.at(id);
    return facts;
  }
  ContainerFacts FactsOf(const std::string& id) const {
    ContainerFacts facts;
    facts.container.id = ContainerId(id);
    facts.container.pod_id = PodSandboxId(containers_.at(id).pod);
    facts.container.name = id;
    facts.container.state = containers_.at(id).state;
    return facts;
  }
  std::map<std::string, bool> pods_;  // and whether they are ready
  std::map<std::string, Held> containers_;
  std::vector<Done<Everything>> lists_;
  std::vector<std::function<void()>> questions_;
  std::optional<Everything> frozen_;
};

// A view whose data about an object is its id.
class NamedView final : public TypedView<std::string, std::string> {
 public:
  using TypedView::TypedView;

  std::vector<std::string> stopped;
  std::vector<std::string> gone;

  // The runtime has created them.
  void AddPod(const std::string& id) { Add(*inventory().AddPod(PodSandboxId(id))); }
  void AddContainer(const std::string& id, const std::string& pod) {
    Add(*inventory().AddContainer(inventory().AddPod(PodSandboxId(pod)), ContainerId(id)));
  }
  std::vector<std::string> All() const {
    std::vector<std::string> all;
    ForEachPod([&all](const auto& id) { all.push_back(*id); });
    ForEachContainer([&all](const auto& id) { all.push_back(*id); });
    return all;
  }

  void OnFacts(InventoryPod& pod, const SandboxFacts&) override { Add(pod); }
  void OnFacts(InventoryContainer& container, const ContainerFacts&) override { Add(container); }
  void OnStopped(InventoryContainer& container) override {
    stopped.emplace_back(container.id.value());
  }
  void OnGone(InventoryPod& pod) override { gone.emplace_back(pod.id.value()); }
  void OnGone(InventoryContainer& container) override { gone.emplace_back(container.id.value()); }

 private:
  template <typename Object>
  void Add(Object& object) {
    if (Of(object) == nullptr) {
      Set(object, std::make_shared<std::string>(std::string(object.id.value())));
    }
  }
};

}  // namespace resmgr::test
