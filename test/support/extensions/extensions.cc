// SPDX-License-Identifier: Apache-2.0
#include "test/support/extensions/extensions.h"

#include <chrono>
#include <fstream>
#include <utility>

#include "pkg/nri/testing/fake_plugin.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::test {
namespace {

constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::milliseconds kTick{5};

}  // namespace

StatusOr<std::unique_ptr<SharesHookServer>> SharesHookServer::Start(
    const std::filesystem::path& hook_directory, const std::filesystem::path& socket,
    const std::filesystem::path& log) {
  RESMGR_ASSIGN_OR_RETURN(
      auto process, ChildProcess::Start(
                        {RESMGR_BINARY_DIR "/test/support/hook_server/resmgr-hook-server",
                         "-socket", socket, "-sparse", "-shares", std::to_string(kExtensionShares),
                         "-annotation", std::string(kExtensionAnnotation) + "=hook"},
                        log));
  std::unique_ptr<SharesHookServer> server(new SharesHookServer(std::move(process)));
  RESMGR_RETURN_IF_ERROR(WaitUntil("the hook server serves", kPatience, [&] {
    return TextOf(log).find("serving") != std::string::npos;
  }));
  std::filesystem::create_directories(hook_directory);
  const std::filesystem::path written = hook_directory / "new";
  std::ofstream(written) << R"({"remote-endpoint": ")" << socket.string()
                         << R"(", "failure-policy": "Fail", )"
                         << R"("runtime-hooks": ["PreRunPodSandbox", "PreCreateContainer"]})";
  std::filesystem::rename(written, hook_directory / "shares.json");
  return server;
}

SharesPlugin::SharesPlugin(std::string socket, Speaks speaks)
    : socket_(std::move(socket)), speaks_(speaks), thread_([this] { Run(); }) {}

SharesPlugin::~SharesPlugin() {
  ends_ = true;
  thread_.join();
}

void SharesPlugin::Run() {
  EventLoop loop;
  std::unique_ptr<nri::test::FakePlugin> plugin;
  const auto tick = loop.Every(kTick, [&] {
    if (ends_) return loop.Stop();
    if (plugin != nullptr && plugin->lost) plugin.reset();
    if (plugin == nullptr) plugin = Connect(loop);
    synchronized_ = plugin != nullptr && plugin->synchronized;
  });
  loop.Run();
}

std::unique_ptr<nri::test::FakePlugin> SharesPlugin::Connect(EventLoop& loop) const {
  StatusOr<UniqueFd> connection = ConnectUnix(socket_);
  if (!connection.ok()) return nullptr;
  nri::test::FakePluginOptions options;
  if (speaks_ == Speaks::k061) options.dialect = nri::test::Dialect::k061;
  auto plugin =
      std::make_unique<nri::test::FakePlugin>(loop, *std::move(connection), std::move(options));
  plugin->create = [](const nri::test::api::CreateContainerRequest&) {
    nri::test::api::CreateContainerResponse response;
    auto& adjust = *response.mutable_adjust();
    adjust.mutable_linux()->mutable_resources()->mutable_cpu()->mutable_shares()->set_value(
        kExtensionShares);
    (*adjust.mutable_annotations())[kExtensionAnnotation] = "plugin";
    return response;
  };
  return plugin;
}

}  // namespace resmgr::test
