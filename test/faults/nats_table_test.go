package faults_test

// natsFaults are those of clusters, networks, full stores and losses.
func natsFaults() []fault {
	var list []fault
	for _, group := range [][]fault{clusterFaults(), networkFaults(), fullFaults(), lossFaults()} {
		list = append(list, group...)
	}
	return list
}
