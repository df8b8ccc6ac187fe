// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/optional_services.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unix_socket.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using resmgr::test::RunUntil;
using std::chrono::milliseconds;

class OptionalSocketTest : public testing::Test {
 protected:
  bool Serves() { return ConnectUnix(path_).ok(); }

  TempDir directory_;
  const std::string path_ = directory_.File("admin.sock");
  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
};

TEST_F(OptionalSocketTest, IsServedAtOnce) {
  const OptionalSocket socket(loop_, flushes_, path_, {});
  EXPECT_TRUE(Serves());
  EXPECT_FALSE(socket.problem());
}

TEST_F(OptionalSocketTest, WithoutAPathServesNothing) {
  const OptionalSocket socket(loop_, flushes_, "", {});
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path_).parent_path()));
}

TEST_F(OptionalSocketTest, IsServedOnceAnotherInstanceHasEnded) {
  auto other = std::make_unique<ListeningSocket>(*ListeningSocket::Create(path_));
  const OptionalSocket socket(loop_, flushes_, path_, {});
  ASSERT_TRUE(socket.problem());
  EXPECT_EQ(socket.problem()->kind, "socket");
  EXPECT_EQ(socket.problem()->objects, std::vector{path_});
  bool tried_again = false;
  const auto later = loop_.After(milliseconds(150), [&] {
    tried_again = true;
    other.reset();
  });
  EXPECT_TRUE(RunUntil(loop_, [&] { return tried_again && Serves() && !socket.problem(); }));
}

// A configuration may ask for one while the loop runs.
TEST_F(OptionalSocketTest, TheFirstTryMayBeMadeOnAnotherThread) {
  const auto own = std::this_thread::get_id();
  const OptionalSocket socket(
      loop_, flushes_, path_, {},
      [own](const std::string& path) -> StatusOr<ListeningSocket> {
        if (std::this_thread::get_id() == own) return Internal("on the loop");
        return ListeningSocket::Create(path);
      },
      OptionalListener::FirstTry::kOffLoop);
  EXPECT_FALSE(socket.served());
  EXPECT_TRUE(RunUntil(loop_, [&] { return socket.served(); }));
  EXPECT_FALSE(socket.problem());
  EXPECT_TRUE(Serves());
}

// The socket's file system may hang.
TEST_F(OptionalSocketTest, IsTriedAgainOnAnotherThread) {
  std::mutex mutex;
  std::vector<std::thread::id> threads;
  const OptionalSocket socket(loop_, flushes_, path_, {},
                              [&](const std::string& path) -> StatusOr<ListeningSocket> {
                                const std::lock_guard lock(mutex);
                                threads.push_back(std::this_thread::get_id());
                                if (threads.size() == 1) return Unavailable("no such directory");
                                return ListeningSocket::Create(path);
                              });
  EXPECT_TRUE(RunUntil(loop_, [this] { return Serves(); }));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0], std::this_thread::get_id()) << "before the loop runs";
  EXPECT_NE(threads[1], std::this_thread::get_id());
}

TEST_F(OptionalSocketTest, EndsWhileATryIsUnderWay) {
  std::ofstream(path_) << "no socket";
  auto socket = std::make_unique<OptionalSocket>(loop_, flushes_, path_, UnaryServer::Methods());
  const auto later = loop_.After(milliseconds(100), [&] {
    socket.reset();
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_FALSE(Serves());
}

// The start must not wait for DNS.
TEST(OptionalMetricsTest, ANameIsLookedUpOnAnotherThread) {
  EventLoop loop;
  const OptionalMetrics named(loop, "no-such-host.invalid:0", {});
  EXPECT_FALSE(named.problem()) << "not tried yet";
  EXPECT_TRUE(RunUntil(loop, [&] { return named.problem().has_value(); }));
  const OptionalMetrics numbered(loop, "192.0.2.1:0", {});
  EXPECT_TRUE(numbered.problem()) << "not an address of this machine";
}

}  // namespace
}  // namespace resmgr
