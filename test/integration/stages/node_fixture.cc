// SPDX-License-Identifier: Apache-2.0
#include "test/integration/stages/node_fixture.h"

#include <future>
#include <memory>
#include <string_view>
#include <utility>

#include "pkg/dump/dumper.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/node/brain_host.h"
#include "pkg/node/relay_door.h"
#include "pkg/pipeline/hint_finder.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

StagesTest::~StagesTest() {
  Stop();
}

void StagesTest::Start(std::vector<Stage*> stages, std::optional<NriHostingOptions> nri_host,
                       std::optional<HookHostingOptions> hooks) {
  ASSERT_TRUE(runtime_.Start(directory_.File("runtime.sock")).ok());
  // The thread's, too: it is still busy with the promise when that is kept.
  const auto ready = std::make_shared<std::promise<EventLoop*>>();
  thread_ = std::thread([this, ready, stages = std::move(stages), nri_host = std::move(nri_host),
                         hooks = std::move(hooks)] {
    Run(stages, nri_host, hooks, [&ready](EventLoop& loop) { ready->set_value(&loop); });
  });
  loop_ = ready->get_future().get();
}

void StagesTest::Run(const std::vector<Stage*>& stages,
                     const std::optional<NriHostingOptions>& nri_host,
                     const std::optional<HookHostingOptions>& hooks,
                     const std::function<void(EventLoop&)>& ready) {
  EventLoop loop;
  h2::FlushQueue flushes(loop);
  const auto dumper = dump::Dumper::Create({}, [](bool, std::string_view) {});
  ASSERT_TRUE(dumper.ok()) << dumper.status();
  const Machine machine = S1Ht();
  const FrontDoorFactory factory =
      RelayDoorFactory({.relay_socket = directory_.File("relay.sock"),
                        .runtime_socket = directory_.File("runtime.sock"),
                        .stages = stages,
                        .hooks = hooks.value_or(HookHostingOptions()),
                        .nri_host = nri_host});
  LoopClock clock(loop);
  Pipeline pipeline(clock);
  HintFinder hints(loop, {});
  const auto door = factory.create({.loop = loop, .flushes = flushes, .pipeline = pipeline});
  ASSERT_TRUE(door.ok()) << door.status();
  BrainHost host(
      {.loop = loop, .machine = machine, .door = **door, .pipeline = pipeline, .hints = hints});
  (*door)->Start(**dumper);
  host.Start(has_policy_ ? std::make_unique<FirstFitPolicy>(machine) : nullptr);
  door_ = door->get();
  loop.Post([&] { ready(loop); });
  loop.Run();
  (*door)->Stop();
}

void StagesTest::Stop() {
  if (!thread_.joinable()) return;
  loop_->Stop();
  thread_.join();
}

void StagesTest::Configure(const Config& config) {
  OnLoop([&] { door_->Configure(config); });
}

void StagesTest::OnLoop(const std::function<void()>& task) {
  // The loop's, too: it is still busy with the promise when that is kept.
  const auto done = std::make_shared<std::promise<void>>();
  loop_->Post([&task, done] {
    task();
    done->set_value();
  });
  done->get_future().get();
}

std::string StagesTest::Received(const std::string& method) {
  const auto calls = runtime_.Calls(method);
  EXPECT_EQ(calls.size(), 1u) << method;
  return calls.empty() || calls.back().messages.empty() ? "" : calls.back().messages[0];
}

}  // namespace resmgr::test
