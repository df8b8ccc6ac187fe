// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/field_writer.h"
#include "pkg/model/container_details.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Parts of the view of a container (container_view.h): what is in lists.

// "NAME=value". A variable that is there already gets the value in its place.
void AddEnvironment(const Environment& environment,
                    google::protobuf::RepeatedPtrField<std::string>& env);

// The same as encoded fields of an api::Container, without a text for each. False, and nothing is
// added: a variable is there twice, or not in ASCII, which needs AddEnvironment.
bool AppendPlainEnvironment(const Environment& image, const Environment& own,
                            FieldWriter& container);

// As OCI's mount options. An image that is mounted has the type "image" and its reference as
// source.
void AddMounts(const std::vector<Mount>& mounts,
               google::protobuf::RepeatedPtrField<api::Mount>& to);

// Those that a runtime will give the container: its own ones without a path, those of the pod with
// the path that is known of the pod, and none where it uses the node's.
void AddNamespaces(const ContainerSecurity& security, const api::PodSandbox& pod,
                   api::LinuxContainer& linux);

void AddSeccomp(const ContainerSecurity& security, api::LinuxContainer& linux);

void SetHooks(const std::vector<OciHook>& hooks, api::Hooks& to);
void SetLimits(const std::vector<ResourceLimit>& limits, api::Container& container);

}  // namespace resmgr::nri
