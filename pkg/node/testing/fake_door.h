// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/node/front_door.h"
#include "pkg/resmgr/testing/fake_runtime_client.h"

namespace resmgr::test {

// A front door without requests. It records calls, in order: "start", "active 1" (a link by its
// number), "active none", "connect 1", "retire 1", "end 1" (of the link), "drain", "pause",
// "resume", "stop".
class FakeDoor : public FrontDoor {
 public:
  using History = std::vector<std::string>;

  class Link final : public BrainLink {
   public:
    Link(FakeDoor& door, int number)
        : door_(door), number_(number), history_(door.history_), links_(door.links_) {
      links_->push_back(this);
    }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;
    ~Link() override {
      std::erase(*links_, this);
      Note("end");
    }

    RuntimeClient& runtime() override { return client; }
    void Connect(RuntimeEvents told) override {
      events = std::move(told);
      Note("connect");
      if (door_.runtime_is_up) events.connected();
    }
    Status EnsureConnected() override { return connection; }
    void Retire() override { Note("retire"); }

    // Connects, and answers the client's list call.
    void Synchronize() {
      events.connected();
      client.AnswerList();
    }
    // A container of the runtime that asks for one CPU for itself, runs on any, and is in no list
    // that was answered yet.
    ContainerId HoldRunning(const std::string& name) {
      Pod pod;
      pod.id = PodSandboxId("sandbox-of-" + name);
      pod.name = name;
      pod.qos = QosClass::kGuaranteed;
      RuntimeContainer container;
      container.id = ContainerId("id-of-" + name);
      container.pod_id = pod.id;
      container.name = name;
      container.state = ContainerState::kRunning;
      container.resources.cpu_period = 100'000;
      container.resources.cpu_quota = 100'000;
      container.resources.cpu_shares = 1024;
      client.held.pods.push_back(pod);
      client.held.containers.push_back(container);
      return container.id;
    }
    int number() const { return number_; }

    FakeRuntimeClient client;
    RuntimeEvents events;
    Status connection;

   private:
    void Note(const char* what) { history_->push_back(fmt::format("{} {}", what, number_)); }

    FakeDoor& door_;
    const int number_;
    const std::shared_ptr<History> history_;
    const std::shared_ptr<std::vector<Link*>> links_;
  };

  void Start(dump::Dumper&) override {
    history_->emplace_back("start");
    if (at_start) at_start();
  }
  std::unique_ptr<BrainLink> MakeLink() override {
    return std::make_unique<Link>(*this, ++last_link_);
  }
  void SetActive(BrainLink* link) override {
    const auto* const active = static_cast<const Link*>(link);
    history_->push_back(active == nullptr ? "active none"
                                          : fmt::format("active {}", active->number()));
  }
  void Drain(std::function<void()> done) override {
    history_->emplace_back("drain");
    if (drains) done();
  }
  void Pause(std::function<void()> done) override {
    history_->emplace_back("pause");
    paused = std::move(done);
    if (drains) paused();
  }
  Status Resume() override {
    history_->emplace_back("resume");
    return std::exchange(resume_failure, OkStatus());
  }
  void Stop() override { history_->emplace_back("stop"); }

  // The links of existing brains, the newest last.
  const std::vector<Link*>& links() const { return *links_; }
  // Outlives the door.
  std::shared_ptr<const History> history() const { return history_; }

  std::function<void()> at_start;
  std::function<void()> paused;  // callback of the last Pause
  Status resume_failure;         // result of the next Resume
  bool drains = true;            // false: requests go on for ever
  bool runtime_is_up = false;    // links are connected at once

 private:
  const std::shared_ptr<History> history_ = std::make_shared<History>();
  const std::shared_ptr<std::vector<Link*>> links_ = std::make_shared<std::vector<Link*>>();
  int last_link_ = 0;
};

}  // namespace resmgr::test
