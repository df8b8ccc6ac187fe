// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/pipeline/stage.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/fake_runtime/fake_runtime.h"

namespace resmgr::test {

// The relay, the resource manager with a small policy and the stages of the test, on a loop of
// their own in this process, before a fake runtime.
class StagesTest : public testing::Test {
 protected:
  ~StagesTest() override;

  // Runs the node with these stages behind the policy, which outlive the test's calls.
  void Start(std::vector<Stage*> stages);
  // Ends the node; stages may be looked at then.
  void Stop();
  // Runs on the node's loop and waits for it.
  void OnLoop(const std::function<void()>& task);

  CriClient Client() const { return CriClient(directory_.File("relay.sock")); }
  // The one request of this method that reached the runtime since the calls were last forgotten.
  std::string Received(const std::string& method);

  FakeRuntime runtime_;

 private:
  void Run(const std::vector<Stage*>& stages, const std::function<void(EventLoop&)>& ready);

  TempDir directory_;
  EventLoop* loop_ = nullptr;
  std::thread thread_;
};

}  // namespace resmgr::test
