// SPDX-License-Identifier: Apache-2.0

package main

import (
	"syscall"

	"github.com/containerd/nri/pkg/api"
)

// The host's character device of this path; nothing where there is none.
func addDevice(adjustment *api.ContainerAdjustment, path string) {
	var found syscall.Stat_t
	if err := syscall.Stat(path, &found); err != nil || found.Mode&syscall.S_IFMT != syscall.S_IFCHR {
		return
	}
	// As Linux packs a device number.
	major := int64(found.Rdev>>8&0xfff | found.Rdev>>32&^0xfff)
	minor := int64(found.Rdev&0xff | found.Rdev>>12&^0xff)
	adjustment.AddDevice(&api.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor})
}
