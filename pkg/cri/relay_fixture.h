// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/cri/relay.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/wait.h"

namespace resmgr {

// A loop on a thread of its own, with objects that a test creates there. The test's own thread uses
// sockets, as clients and runtimes do.
class LoopThread {
 public:
  LoopThread() : thread_([this] { Run(); }) { started_.get_future().wait(); }
  ~LoopThread() {
    loop_->Stop();
    thread_.join();
  }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // Runs the function on the loop and waits for its result.
  template <typename Function>
  auto Do(Function function) {
    using Task = std::packaged_task<decltype(function())()>;
    // Shared with the loop, which is still in the task when the result is available.
    const auto task = std::make_shared<Task>(std::move(function));
    auto result = task->get_future();
    loop_->Post([task] { (*task)(); });
    return result.get();
  }
  EventLoop& loop() { return *loop_; }
  h2::FlushQueue& flushes() { return *flushes_; }

 private:
  void Run() {
    EventLoop loop;
    h2::FlushQueue flushes(loop);
    loop_ = &loop;
    flushes_ = &flushes;
    loop.Post([this] { started_.set_value(); });
    loop.Run();
  }

  EventLoop* loop_ = nullptr;
  h2::FlushQueue* flushes_ = nullptr;
  std::promise<void> started_;
  std::thread thread_;
};

// A relay between the sockets of the directory, served by a loop of its own.
class RelayTest : public testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kPatience = test::kWaitPatience;

  ~RelayTest() override { StopRelay(); }

  std::string Path(const std::string& name) const { return directory_.File(name); }
  std::string RelaySocket() const { return Path("relay.sock"); }

  // Uses `options.runtime_socket` and the other paths unchanged.
  void StartRelay(Relay::Options options, Relay::Observers observers = {}) {
    thread_.Do([&] {
      auto listener = ListeningSocket::Create(RelaySocket());
      ASSERT_TRUE(listener.ok()) << Describe(listener.status());
      relay_ = std::make_unique<Relay>(thread_.loop(), thread_.flushes(), *std::move(listener),
                                       std::move(options), observers);
    });
  }
  void StopRelay() {
    thread_.Do([this] { relay_.reset(); });
  }
  // The result of a client's call that ends soon.
  template <typename ClientCall>
  static auto EndOf(ClientCall& call) {
    auto result = call.Wait(kPatience);
    EXPECT_TRUE(result.has_value()) << "the call goes on";
    return std::move(result).value();
  }
  // Checks the relay on its own thread until the condition holds.
  bool Eventually(const std::function<bool(Relay&)>& condition) {
    return test::Eventually([&] { return thread_.Do([&] { return condition(*relay_); }); },
                            kPatience);
  }

  const TempDir directory_;
  LoopThread thread_;
  std::unique_ptr<Relay> relay_;
};

}  // namespace resmgr
