// SPDX-License-Identifier: Apache-2.0
#include "policies/static-plus/static_plus_options.h"

#include "pkg/config/map_reader.h"

namespace resmgr {
namespace {

void ReadGrant(MapReader& reader, StaticPlusOptions& options) {
  std::string grant = "always";
  reader.Choice("ExclusiveCPUs", {"always", "guaranteed", "annotated"}, grant);
  using enum StaticPlusOptions::Grant;
  options.grant = grant == "always" ? kAlways : grant == "guaranteed" ? kGuaranteed : kAnnotated;
}

}  // namespace

StatusOr<StaticPlusOptions> ReadStaticPlusOptions(const ConfigNode* section, ConfigNode* complete) {
  StaticPlusOptions options;
  const ConfigNode nothing;
  MapReader reader(section == nullptr ? nothing : *section, "policy.static-plus", complete);
  reader.Map("Options", [&](MapReader& map) { ReadExclusiveOptions(map, options.exclusive); });
  ReadAlignment(reader, options.alignment);
  reader.Bool("PreferIsolatedCPUs", options.exclusive.prefer_isolated);
  ReadGrant(reader, options);
  std::vector<std::string> namespaces;
  reader.List("ReservedPoolNamespaces", namespaces);
  options.reserved_pool_namespaces.insert(options.reserved_pool_namespaces.end(),
                                          namespaces.begin(), namespaces.end());
  options.privileged.Read(reader);
  RESMGR_RETURN_IF_ERROR(reader.Finish());
  return options;
}

}  // namespace resmgr
