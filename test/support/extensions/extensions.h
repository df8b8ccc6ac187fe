// SPDX-License-Identifier: Apache-2.0
// A hook server and an NRI plugin that change the kubelet's requests, as real ones do: each gives
// every container other CPU shares and an annotation.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "test/support/containerd/child_process.h"

namespace resmgr::nri::test {
class FakePlugin;
}

namespace resmgr::test {

inline constexpr int64_t kExtensionShares = 512;
inline constexpr char kExtensionAnnotation[] = "example.com/by-extension";

// A hook server process of Koordinator's protocol. Thread-compatible.
class SharesHookServer {
 public:
  // Serves at `socket` and writes the file that names it into `hook_directory` when it does.
  // Its log is `log`.
  static StatusOr<std::unique_ptr<SharesHookServer>> Start(
      const std::filesystem::path& hook_directory, const std::filesystem::path& socket,
      const std::filesystem::path& log);

 private:
  explicit SharesHookServer(std::unique_ptr<ChildProcess> process) : process_(std::move(process)) {}

  std::unique_ptr<ChildProcess> process_;
};

// An NRI plugin on a thread of its own. It connects to the host of plugins at a socket, and again
// whenever the host went away.
class SharesPlugin {
 public:
  // The plugin's version of NRI: the newest one, or 0.6.1, which containerd 1.7 has.
  enum class Speaks { kNewest, k061 };
  explicit SharesPlugin(std::string socket, Speaks speaks = Speaks::kNewest);
  ~SharesPlugin();
  SharesPlugin(const SharesPlugin&) = delete;
  SharesPlugin& operator=(const SharesPlugin&) = delete;

  // Whether the plugin has taken the host's pods and containers. Callable from any thread.
  bool synchronized() const { return synchronized_; }

 private:
  void Run();
  std::unique_ptr<nri::test::FakePlugin> Connect(EventLoop& loop) const;

  const std::string socket_;
  const Speaks speaks_;
  std::atomic<bool> ends_{false};
  std::atomic<bool> synchronized_{false};
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace resmgr::test
