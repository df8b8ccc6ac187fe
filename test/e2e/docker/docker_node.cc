// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/docker/docker_node.h"

#include <chrono>
#include <string_view>

#include <fmt/format.h>

namespace resmgr::test {
namespace {

constexpr std::chrono::seconds kCtlTimeout{10};
constexpr std::string_view kKoordLink =
    RESMGR_BINARY_DIR "/cmd/koord-runtime-proxy/koord-runtime-proxy";
constexpr std::string_view kCtl = RESMGR_BINARY_DIR "/cmd/cri-resmgr-ctl/cri-resmgr-ctl";

}  // namespace

StatusOr<std::unique_ptr<DockerNode>> DockerNode::Start(const Options& options) {
  std::unique_ptr<DockerNode> node(new DockerNode(options));
  RESMGR_ASSIGN_OR_RETURN(node->dockerd_, Dockerd::Start(options.engine));
  RESMGR_RETURN_IF_ERROR(node->StartDaemon());
  return node;
}

Status DockerNode::StartDaemon() {
  std::vector<std::string> flags = {"-relay-dir",     directory() / "relay-state",
                                    "-config-socket", "disabled",
                                    "-admin-socket",  AdminSocket(),
                                    "-agent-socket",  "disabled"};
  std::vector<std::string> launcher;
  if (options_.koord) {
    flags.insert(flags.end(), {"--backend-runtime-mode=Docker",
                               "--remote-runtime-service-endpoint=" + dockerd_->socket().string(),
                               "--koord-runtimeproxy-endpoint", socket()});
    // The words behind the script: its name, the program that the link takes the place of, flags.
    launcher = {"bash", "-c", fmt::format("shift; exec '{}' \"$@\"", kKoordLink), "bash"};
  } else {
    flags.insert(flags.end(), {"-mode", "docker", "-docker-socket", dockerd_->socket(),
                               "-relay-socket", socket(), "-policy", options_.policy});
  }
  if (!options_.reserved.empty()) {
    flags.insert(flags.end(), {"-reserved-resources", "CPU=" + options_.reserved});
  }
  flags.insert(flags.end(), options_.flags.begin(), options_.flags.end());
  RESMGR_ASSIGN_OR_RETURN(daemon_,
                          DaemonProcess::Start(flags, directory() / "relay.log", launcher));
  return OkStatus();
}

DockerNode::Words DockerNode::CtlLine(const Words& command) const {
  Words words = {std::string(kCtl), "-socket", AdminSocket()};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

StatusOr<std::string> DockerNode::Ctl(const Words& command) const {
  const std::filesystem::path output = directory() / "ctl.out";
  std::filesystem::remove(output);
  Words words = CtlLine(command);
  words.insert(words.end(), {"-o", "json"});
  RESMGR_RETURN_IF_ERROR(RunProgram(words, output, kCtlTimeout));
  return TextOf(output);
}

}  // namespace resmgr::test
