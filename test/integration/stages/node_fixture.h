// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/node/front_door.h"
#include "pkg/node/hook_hosting.h"
#include "pkg/node/nri_hosting.h"
#include "pkg/pipeline/stage.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/fake_runtime/fake_runtime.h"

namespace resmgr::test {

// The limit for short actions, on a busy machine.
inline constexpr std::chrono::seconds kPatience{20};

// The relay, the resource manager with a small policy and the stages of the test, on a loop of
// their own in this process, before a fake runtime.
class StagesTest : public testing::Test {
 protected:
  // Runs the node until the end of the scope: after the stages of a test's body are declared.
  class NodeRun {
   public:
    NodeRun(StagesTest& test, std::vector<Stage*> stages) : test_(test) {
      test_.Start(std::move(stages));
    }
    ~NodeRun() { test_.Stop(); }
    NodeRun(const NodeRun&) = delete;
    NodeRun& operator=(const NodeRun&) = delete;

   private:
    StagesTest& test_;
  };

  ~StagesTest() override;

  // Runs the node with these stages behind the policy and maybe a host of NRI plugins and hook
  // servers. The node reads its stages until it ends: for stages that live in the test's body, see
  // NodeRun.
  void Start(std::vector<Stage*> stages, std::optional<NriHostingOptions> nri_host = std::nullopt,
             std::optional<HookHostingOptions> hooks = std::nullopt);
  // Ends the node; stages may be looked at then.
  void Stop();
  // Runs on the node's loop and waits for it.
  void OnLoop(const std::function<void()>& task);

  // Sets the configuration in force, on the node's loop.
  void Configure(const Config& config);

  EventLoop& loop() { return *loop_; }
  std::string File(const std::string& name) const { return directory_.File(name); }

  CriClient Client() const { return CriClient(directory_.File("relay.sock")); }
  // The one request of this method that reached the runtime since the calls were last forgotten.
  std::string Received(const std::string& method);

  FakeRuntime runtime_;
  bool has_policy_ = true;  // when the node starts

 private:
  void Run(const std::vector<Stage*>& stages, const std::optional<NriHostingOptions>& nri_host,
           const std::optional<HookHostingOptions>& hooks,
           const std::function<void(EventLoop&)>& ready);

  TempDir directory_;
  EventLoop* loop_ = nullptr;
  FrontDoor* door_ = nullptr;  // while the loop runs
  std::thread thread_;
};

}  // namespace resmgr::test
