"""What the services of the small OpenStack load: its fake edges and its faults. Imports nothing of the project.

wsgi.py       serves one API; injects HTTP faults
paste.py      WSGI module of a service that is described by a paste file
virt.py       Nova's compute driver: the hypervisor is a directory of JSON files
ml2.py        Neutron's ML2 mechanism driver: it binds every port
volume.py     Cinder's volume driver, without storage
octavia.py    Octavia's drivers, without amphorae, and its worker
designate.py  Designate's worker, without name servers
provision.py  fills a new cloud: accounts, catalog, flavors, image, networks
event.py      sends an event to Aodh
listen.py     prints Nova's notifications
faults.py     the rules by which the above fail
"""
