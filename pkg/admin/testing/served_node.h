// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/dump/dumper.h"
#include "pkg/node/config_reader.h"
#include "pkg/node/node_view.h"
#include "pkg/node/testing/fake_door.h"
#include "pkg/node/testing/fake_policy_host.h"
#include "pkg/node/testing/test_policies.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine_source.h"

namespace resmgr::test {

// A node of four CPUs whose brain is a fake, and clients that call its services.
class ServedNode : public testing::Test {
 protected:
  ServedNode() : ServedNode(Config()) {}
  explicit ServedNode(Config config) : config_(std::move(config)) {}

  using Answer = StatusOr<std::string>;

  // Shows what the test sets.
  class Door final : public FakeDoor {
   public:
    explicit Door(const ServedNode& node) : node_(node) {}
    std::vector<PluginView> plugins() const override { return node_.plugins_; }
    void DescribeRuntimes(std::function<void(std::vector<RuntimeView>)> done) override {
      done(node_.runtimes_);
    }
    std::vector<RuntimeView> runtimes() const override { return node_.runtimes_; }
    std::optional<OtherSocket> other_socket() const override { return node_.other_socket_; }
    std::vector<SeenContainer> seen() const override { return node_.seen_; }

   private:
    const ServedNode& node_;
  };

  NodeView View() {
    return {.loop = loop_,
            .version = "1.2",
            .machine = *machine_,
            .policies = policies_,
            .host = host_,
            .door = door_,
            .configurator = configurator_,
            .pipeline = pipeline_,
            .auditor = auditor_,
            .relay_socket = "/relay.sock",
            .runtime_socket = "/runtime.sock",
            .runtime_state = [this] { return runtime_state_; },
            .state_saved = [this] { return state_saved_; },
            .dump_lost = [this] { return dump_lost_; },
            .dump_losing = [this] { return dump_losing_; },
            .dump_failing = [this] { return dump_failing_; },
            .offline = [this] { return offline_; },
            .machine_problems = [this] { return machine_problems_; },
            .own_problems = [this] { return own_problems_; }};
  }

  // Runs the loop until the answer is there.
  Answer Call(const UnaryServer::Methods& methods, std::string_view path, std::string message) {
    const auto method = methods.find(path);
    if (method == methods.end()) return NotFound("{}", path);
    std::optional<Answer> answer;
    bool waits = false;
    method->second(std::move(message), [&](Answer given) {
      answer = std::move(given);
      if (waits) loop_.Stop();
    });
    waits = !answer;
    if (waits) RunLoop();
    return answer.value_or(Unavailable("no answer"));
  }
  // Runs the loop until it is stopped.
  void RunLoop() {
    const auto late = loop_.After(std::chrono::seconds(60), [this] {
      ADD_FAILURE() << "it takes too long";
      loop_.Stop();
    });
    loop_.Run();
  }

  EventLoop loop_;
  LoopClock clock_{loop_};
  FakePolicyHost host_;
  Door door_{*this};
  const PolicyRegistry policies_ = NullAndFirstFit();
  const std::shared_ptr<const Machine> machine_ =
      std::make_shared<const Machine>(*LoadMachine("synthetic:core:4 pu:1"));
  const Config config_;  // of the daemon's own file
  std::unique_ptr<dump::Dumper> dumper_ = *dump::Dumper::Create({}, [](bool, std::string_view) {});
  Configurator configurator_{
      {.loop = loop_,
       .clock = clock_,
       .reader = std::make_shared<const ConfigReader>(
           ConfigReader::Options{.machine = machine_, .policies = policies_}),
       .host = host_,
       .dumper = *dumper_,
       .save = [this](const std::string&, const DeliveredConfig&) { return saved_; }},
      config_,
      "the command line"};
  Pipeline pipeline_{clock_};
  Auditor auditor_{{.loop = loop_, .manager = [this] { return host_.manager(); }}};
  std::vector<PluginView> plugins_;
  std::vector<RuntimeView> runtimes_;
  std::vector<SeenContainer> seen_;
  std::string runtime_state_ = "not used";
  bool state_saved_ = true;
  Status saved_;  // the result of storing a configuration
  uint64_t dump_lost_ = 0;
  bool dump_losing_ = true;
  bool dump_failing_ = false;
  std::optional<FrontDoor::OtherSocket> other_socket_;
  CpuSet offline_;
  std::vector<Problem> machine_problems_;
  std::vector<Problem> own_problems_;
};

}  // namespace resmgr::test
