package faults_test

// natsFaults are those of clusters, proxies and disks.
func natsFaults() []fault {
	return nil
}
