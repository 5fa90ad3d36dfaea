package faults_test

// bridgeFaults are those of the program itself.
func bridgeFaults() []fault {
	return []fault{
		{
			name: "kill -9 bridge", does: "the bridge is killed, and started again after the outage",
			short: 2, often: true, inflict: killBridge,
		},
	}
}

func killBridge(tr *trial) {
	tr.bridge.Kill(tr)
	tr.away()
	tr.bridge = tr.Launch(tr)
}
