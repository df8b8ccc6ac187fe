// SPDX-License-Identifier: Apache-2.0
// Any bytes as the message of a call: shown as YAML without harm. The first byte
// picks the call, whether secrets are shown and whether the message was cut.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "pkg/dump/event.h"
#include "pkg/dump/message_tree.h"
#include "pkg/dump/yaml_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace resmgr::dump;
  static constexpr std::array<std::string_view, 8> kPaths = {
      "/runtime.v1.RuntimeService/CreateContainer",
      "/runtime.v1.RuntimeService/RunPodSandbox",
      "/runtime.v1.RuntimeService/ListPodSandboxStats",
      "/runtime.v1.RuntimeService/ContainerStatus",
      "/runtime.v1.RuntimeService/ExecSync",
      "/runtime.v1alpha2.ImageService/PullImage",
      "/runtime.v1.ImageService/ImageFsInfo",
      "/unknown.Service/Method"};
  if (size == 0) return 0;
  const bool show_secrets = (data[0] & 0x80) != 0;
  const MethodTypes types = FindMethodTypes(kPaths.at(data[0] & 7));
  Payload payload(std::string(data + 1, data + size));
  if ((data[0] & 0x40) != 0) ++payload.total_size;
  for (const auto* type : {types.request, types.reply}) {
    const std::string yaml = ToYaml(ToTree(payload, type, show_secrets));
    if (yaml.empty() || yaml.back() != '\n') std::abort();
  }
  return 0;
}
