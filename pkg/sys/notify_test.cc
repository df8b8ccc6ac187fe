// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/notify.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

class NotifyTest : public testing::Test {
 public:
  ~NotifyTest() override { ::unsetenv("NOTIFY_SOCKET"); }

 protected:
  // A service manager at that name ('@' for an abstract one).
  void Listen(const std::string& name) {
    manager_.Reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ASSERT_EQ(::bind(manager_.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
    ASSERT_EQ(::setenv("NOTIFY_SOCKET", name.c_str(), 1), 0);
  }

  std::string Received() const {
    std::array<char, 256> buffer{};
    const ssize_t got = ::recv(manager_.get(), buffer.data(), buffer.size(), 0);
    return {buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
  }

  TempDir directory_;
  UniqueFd manager_;
};

TEST_F(NotifyTest, NoNotifySocketIsNoError) {
  ::unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(NotifyReady().ok());
}

TEST_F(NotifyTest, SendsToASocketFile) {
  Listen(directory_.File("notify"));
  EXPECT_TRUE(NotifyReady().ok());
  EXPECT_EQ(Received(), "READY=1");
  EXPECT_TRUE(NotifyStopping().ok());
  EXPECT_EQ(Received(), "STOPPING=1");
}

TEST_F(NotifyTest, WatchdogIsForTheProcessThatItNames) {
  const auto watches = [](const std::string& period, const std::string& process) {
    ::setenv("WATCHDOG_USEC", period.c_str(), 1);
    ::setenv("WATCHDOG_PID", process.c_str(), 1);
    const auto found = WatchdogPeriod();
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
    return found;
  };
  const std::string us = std::to_string(::getpid());
  EXPECT_EQ(watches("30000000", us), std::chrono::seconds(30));
  EXPECT_EQ(watches("30000000", "1" + us), std::nullopt);
  EXPECT_EQ(watches("soon", us), std::nullopt);
  EXPECT_EQ(watches("0", us), std::nullopt);
  EXPECT_EQ(WatchdogPeriod(), std::nullopt);
  Listen(directory_.File("notify"));
  EXPECT_TRUE(NotifyWatchdog().ok());
  EXPECT_EQ(Received(), "WATCHDOG=1");
}

TEST_F(NotifyTest, SendsToAnAbstractSocket) {
  // The random part of the directory's name makes this one unique, too.
  Listen("@" + directory_.path());
  EXPECT_TRUE(NotifyReady().ok());
  EXPECT_EQ(Received(), "READY=1");
}

TEST_F(NotifyTest, StatusIsOneLine) {
  Listen(directory_.File("notify"));
  EXPECT_TRUE(NotifyStatus("serving\nREADY=1").ok());
  EXPECT_EQ(Received(), "STATUS=serving READY=1");
}

TEST_F(NotifyTest, AbsentManagerIsUnavailable) {
  ASSERT_EQ(::setenv("NOTIFY_SOCKET", directory_.File("no-listener").c_str(), 1), 0);
  EXPECT_EQ(NotifyReady().code(), StatusCode::kUnavailable);
}

TEST_F(NotifyTest, NameThatIsNoSocketIsRefused) {
  for (const std::string& name : {std::string("vsock:2:1"), "/" + std::string(200, 'x')}) {
    ASSERT_EQ(::setenv("NOTIFY_SOCKET", name.c_str(), 1), 0);
    EXPECT_EQ(NotifyReady().code(), StatusCode::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace resmgr
