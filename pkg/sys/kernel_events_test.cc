// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/kernel_events.h"

#include <string>

#include <gtest/gtest.h>

namespace resmgr {
namespace {

TEST(KernelEventsTest, ReadsActionAndDevice) {
  const std::string datagram("offline@/devices/system/cpu/cpu9\0ACTION=offline\0SUBSYSTEM=cpu\0",
                             63);
  const auto event = KernelEvents::Parse(datagram);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->action, "offline");
  EXPECT_EQ(event->path, "/devices/system/cpu/cpu9");
}

TEST(KernelEventsTest, TakesNothingElse) {
  for (const std::string_view text : {"", "offline", "@/devices", "offline@", "libudev"})
    EXPECT_FALSE(KernelEvents::Parse(text)) << text;
}

// Without CPUs that go offline here nothing comes; the emulated machines have some.
TEST(KernelEventsTest, ListensWhereTheKernelLetsIt) {
  EventLoop loop;
  int told = 0;
  const auto events = KernelEvents::Listen(loop, [&](const KernelEvent&) { ++told; });
  if (!events.ok()) GTEST_SKIP() << Message(events.status());
  const auto end = loop.After(std::chrono::milliseconds(1), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace resmgr
