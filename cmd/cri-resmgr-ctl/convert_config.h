// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"

namespace resmgr {

// The configuration of another project, converted to this project's form.
struct ConvertedConfig {
  std::string yaml;
  // One sentence for each key that was left out, has no effect here or means something else.
  std::vector<std::string> notes;
};

// The values of `-from`.
const std::vector<std::string_view>& ConvertibleKinds();

// `kind`: nri-plugins (a BalloonsPolicy or TopologyAwarePolicy object), or a policy of
// cri-resource-manager (balloons, podpools, static-pools, dynamic-pools), in a file or a ConfigMap.
// InvalidArgument: the text has another form.
StatusOr<ConvertedConfig> ConvertConfig(std::string_view kind, std::string_view text,
                                        std::string_view source);

// Whether the text is an object of nri-plugins, which `config check` and `set` convert.
bool IsPolicyObject(std::string_view text);

// The name of the converted text of a file, for messages: their line numbers are not the file's.
std::string NameOfConverted(std::string_view file);

}  // namespace resmgr
