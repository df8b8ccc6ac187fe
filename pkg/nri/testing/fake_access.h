// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/pipeline/runtime_access.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::nri::test {

// A runtime with the test's answers. `asked` records questions, as "image NAME of POD"; answers
// wait until Answer.
class FakeAccess final : public RuntimeAccess {
 public:
  StatusOr<Everything> everything = Everything();
  std::map<std::string, ImageFacts, std::less<>> images;
  std::vector<std::string> asked;
  std::vector<ResourceChange> changes;  // of UpdateContainer
  Status updated;                       // the answer to UpdateContainer at that time

  // Gives the answers to all former questions.
  void Answer() {
    for (const auto& answer : std::exchange(waiting_, {}))
      answer();
  }

  // Gives the answer to the latest question, before those to the former ones.
  void AnswerLatest() {
    if (waiting_.empty()) return;
    const EventLoop::Task answer = std::move(waiting_.back());
    waiting_.pop_back();
    answer();
  }

  void AskVersion(Done<Version> done) override {
    Later("version", [done = std::move(done)] { done(Version()); });
  }
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override {
    Later("sandbox " + std::string(id.value()), Missing(std::move(done)));
  }
  // Answers with what the list has at the time of the answer.
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override {
    Later("container " + std::string(id.value()), [this, id, done = std::move(done)] {
      for (const ContainerFacts& facts : everything->containers)
        if (facts.container.id == id) return done(facts);
      done(NotFound("it does not exist"));
    });
  }
  void InspectImage(const PodSandboxId& pod, std::string_view reference,
                    Done<ImageFacts> done) override {
    Later(fmt::format("image {} of {}", reference, pod.value()),
          [this, name = std::string(reference), done = std::move(done)] {
            const auto found = images.find(name);
            if (found == images.end()) return done(NotFound("no image {}", name));
            done(found->second);
          });
  }
  // Answers with the state at the time of the answer.
  void InspectAll(Done<Everything> done) override {
    Later("everything", [this, done = std::move(done)] { done(everything); });
  }
  void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                       std::function<void(Status)> done) override {
    changes.push_back(change);
    Later("update " + std::string(id.value()), [this, done = std::move(done)] { done(updated); });
  }
  void StopContainer(const ContainerId& id, std::chrono::seconds,
                     std::function<void(Status)> done) override {
    Later("stop " + std::string(id.value()), [done = std::move(done)] { done(OkStatus()); });
  }
  void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) override {
    Later("stop pod " + std::string(id.value()), [done = std::move(done)] { done(OkStatus()); });
  }
  void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) override {
    Later("remove pod " + std::string(id.value()), [done = std::move(done)] { done(OkStatus()); });
  }

 private:
  template <typename Result>
  static EventLoop::Task Missing(Done<Result> done) {
    return [done = std::move(done)] { done(NotFound("it does not exist")); };
  }
  void Later(std::string what, EventLoop::Task answer) {
    asked.push_back(std::move(what));
    waiting_.push_back(std::move(answer));
  }

  std::vector<EventLoop::Task> waiting_;
};

}  // namespace resmgr::nri::test
